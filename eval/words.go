package eval

// Title says what is compared, in one line.
func (r *Report) Title() string { return r.title() }

// Settings are the configuration of the report, a line each. What follows a
// line break inside one is a command.
func (r *Report) Settings() []string { return r.settings() }

// OracleLine puts the bound of g into words, empty where on-demand never ran.
func (r *Report) OracleLine(g *Group) string { return r.oracleLine(g) }

// Command returns the command that repeats run i.
func (r *Report) Command(i int) string { return r.command(i) }

// Trial reports whether policy p is neither the baseline nor on-demand.
func (c *Config) Trial(p string) bool { return c.trial(p) }

// Frontier returns the places in Config.Policies of the fixed mixes, and which of
// those that keep the manifests saves most in the median run of g; false without
// one, and with fewer than two mixes.
func (r *Report) Frontier(g *Group) (mixes []int, best int, ok bool) {
	f, ok := r.frontierOf(g)
	return f.mixes, f.best, ok
}

// Condition is the gate without whom it holds for, as "outage_delta.max <= 0".
func (g Gate) Condition() string { return g.condition() }

// Summary returns the summary of the metric called name, which must be one of
// [Metrics].
func (p *PolicyReport) Summary(name string) *Summary { return p.summary(name) }

// Value returns the value of the metric called name, which must be one of
// [Metrics]; unknown where the run is missing.
func (r *RunRow) Value(name string) Value { return r.value(mustMetric(name)) }
