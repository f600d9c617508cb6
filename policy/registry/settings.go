package registry

import "strings"

// setting returns a parameter. Its values are written as "a|b", with the default first. If there is
// no default, nothing precedes the first bar, or values is empty.
func setting(key, values, about string) KnownSetting {
	s := KnownSetting{Key: key, About: about}
	if values != "" {
		s.Values = strings.Split(values, "|")
		if s.Default = s.Values[0]; s.Default == "" {
			s.Values = s.Values[1:]
		}
	}
	return s
}

// expert marks parameters as rarely needed.
func expert(settings ...KnownSetting) []KnownSetting {
	for i := range settings {
		settings[i].Expert = true
	}
	return settings
}

func bundleSetting() KnownSetting {
	return setting("bundle", "|builtin", "the folder of a bundle of trained models whose forecasts it reads")
}

func karpetrackSettings() []KnownSetting {
	return []KnownSetting{
		setting("batch_window", "10s", "how long it waits for more pods"),
		setting("bid_over", "0.1", "how far a bid is above the published percentile or the price, as a fraction"),
		setting("empty_grace", "5m",
			"how long a node stays empty before it is released, where the pool states no consolidateAfter"),
		setting("max_price", "0", "the maximum price of a Spot node per hour in dollars, also for bids; 0 is no limit"),
		setting("percentile", "50|20|80", "the percentile of the published bids that it starts from"),
		setting("periodic", "true|false", "whether each pool that Spotter serves itself is packed again from time to time"),
		setting("periodic_interval", "30m", "how often that is"),
		setting("removal_delay", "20m", "time from the launch of replacements to the drains"),
		setting("threshold", "0.2", "the fraction that a replacement must save, where the pool states no savingsThreshold"),
		setting("underutilized", "0.3",
			"mean use of CPU and memory below which a node is released if its pods fit elsewhere"),
	}
}

func leftoverSettings() []KnownSetting {
	return []KnownSetting{
		setting("families", "", "the only instance families, whole names with + between them: g5 is not g5g"),
		setting("max_instance_types", "5", "instance types at a time"),
		setting("max_zones", "2", "zones at a time"),
		setting("min_gpus", "0", "accelerators that a node must have"),
		setting("min_placement_score", "5",
			"the minimum placement score, 0 to 10; 0 admits every market. SpotLake's scores end at 3"),
		setting("price_margin", "0.1", "how much cheaper a market must be to replace a chosen one, as a fraction"),
		setting("price_window", "30m", "the age above which prices do not change the choice; 0 accepts any age"),
		setting("score_margin", "1", "how far the score of a chosen market may fall"),
	}
}

func modelSettings() []KnownSetting {
	return []KnownSetting{
		setting("bundle", "|builtin", "the folder of the bundle whose action values it follows; required"),
		setting("calm", "true|false", "whether nothing moves by choice while a node is about to be reclaimed"),
		setting("cap", "false|true", "whether the share stays at what the pods can afford to lose with all Spot nodes"),
		setting("cooldown", "30m", "how often the share changes; leaving Spot does not wait"),
		setting("floor", "0.3", "the fraction of a pool that may be on demand where a loss would hurt a service"),
		setting("interval", "4h", "how often it looks for moves"),
		setting("margin", "0", "by how much an action must be better than keeping the share"),
		setting("spread", "2", "nodes at a time that leave a Spot market with more pods of a service than it can spare"),
	}
}

func portfolioSettings() []KnownSetting {
	return append([]KnownSetting{
		setting("loss_budget", "0.05",
			"the fraction of the on-demand bill that Spot may cost more than it saves, where the pool states no lossBudget; 0 is no bound"),
		setting("disturbance", "2h",
			"the value of a pod in this time is what one restart costs; raising it moves less, and keeps to markets that are reclaimed less"),
		setting("share", "", "holds this share of Spot, as static does"),
	}, expert(
		bundleSetting(),
		setting("choices", "3", "Spot markets of a zone to buy in; raising it spreads more, over more expensive ones"),
		setting("cores", "32",
			"the largest node in vCPUs; above 8 at most half, above 16 a quarter, of its pods' peak in a day"),
		setting("edge", "0.15", "the fraction that a move must save, where the pool states no savingsThreshold"),
		setting("holding", "8h", "how long a saving by using free room lasts; raising it moves for smaller savings"),
		setting("interval", "30m", "how often it looks for moves, where the pool states no cooldown"),
		setting("lasting", "12h", "how long a saving by a cheaper market lasts; raising it moves for smaller savings"),
		setting("margin", "0.1",
			"how much cheaper a larger share of Spot must be before it is taken; raising it returns later"),
		setting("market_risk", "0.1",
			"by how much a node counts as more expensive when the whole pool is in its market; raising it spreads more"),
		setting("return", "2h", "the longest wait before a cheaper, larger share of Spot is taken"),
		setting("type_risk", "0.1", "as market_risk, for the instance type"),
		setting("width", "0.1", "how much more expensive a market may be than the best of its zone, as a fraction"),
		setting("zone_risk", "0.05", "as market_risk, for the zone"),
	)...)
}

func reschedulerSettings() []KnownSetting {
	return []KnownSetting{
		setting("delete_non_replicated", "false|true", "whether pods may be evicted that no controller recreates"),
		setting("drain_delay", "10m", "time between two rounds, in all pools together"),
		setting("drains", "one|budget", "nodes that a round drains: one, or as many as the budgets allow"),
		setting("on_demand_label", "", "the label name or name=value that marks on-demand nodes"),
		setting("scale_up", "true|false", "whether it buys Spot for pods that fit on no node"),
		setting("spot_label", "", "the label name or name=value that marks Spot nodes"),
	}
}

func spotvortexSettings() []KnownSetting {
	return []KnownSetting{
		bundleSetting(),
		setting("calm", "30m", "how long it must be calm before the share grows"),
		setting("compat", "false|true", "whether it reproduces the agent exactly, with its faults and its own guardrails"),
		setting("cooldown", "10m", "time between two changes of the share"),
		setting("drain_share", "0.1", "the fraction of a pool that it drains at a time"),
		setting("max", "1", "upper bound of the share; the pool's bounds are kept"),
		setting("min", "0.167", "lower bound of the share; the pool's bounds are kept"),
		setting("risk_multiplier", "1", "what the risk scores are multiplied by; above 1 is more careful"),
		setting("runtime", "", "an agent's runtime.json with thresholds"),
		setting("step", "10m", "time between two decisions"),
		setting("target", "0.5", "the share that it starts with and drifts to"),
	}
}
