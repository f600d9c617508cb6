// alert makes one that leads to its section of the runbook.
local alert(name, severity, expr, wait, summary, description) = {
  alert: name,
  expr: expr,
  [if wait != null then 'for']: wait,
  labels: { severity: severity },
  annotations: { summary: summary, description: description },
};

{
  local mixin = self,

  prometheusAlerts+:: {
    groups+: [{
      name: 'spotter',
      rules: [
        rule {
          expr: mixin._expr(super.expr),
          annotations+: { runbook_url: mixin._config.runbook + std.asciiLower(rule.alert) },
        }
        for rule in [
          alert(
            'SpotterNoLeader',
            'critical',
            'absent(spotter_leader{%(selector)s}) or max(spotter_leader{%(selector)s}) < 1',
            '2m',
            'No replica of Spotter leads',
            'Nothing is decided, and nodes under notice are not emptied. Look at the pods and at the lease spotter-leader.',
          ),
          alert(
            'SpotterTwoLeaders',
            'critical',
            'sum(spotter_leader{%(selector)s}) > 1',
            '1m',
            'More than one replica of Spotter says that it leads',
            'Two releases may run in one cluster. The one that finds itself overtaken ends without acting; see that only one is installed.',
          ),
          alert(
            'SpotterStepsFail',
            'warning',
            'sum(increase(spotter_decisions_total{result="failed",%(selector)s}[15m])) > %(failedMax)g unless sum(increase(spotter_decisions_total{result="failed",%(selector)s}[15m])) <= sum(increase(spotter_decisions_total{result="done",%(selector)s}[15m]))',
            '5m',
            'Most steps of Spotter fail',
            '{{ $value | printf "%.0f" }} steps failed within a quarter of an hour. The log of the leader says why.',
          ),
          alert(
            'SpotterDoesNotDecide',
            'critical',
            'max(spotter_leader{%(selector)s}) == 1 unless sum(increase(spotter_decisions_total{result="done",%(selector)s}[30m])) > 0',
            '30m',
            'Spotter leads and has decided nothing for half an hour',
            'Its watches may not have caught up, or the API server does not let it. The log of the leader says what it waits for.',
          ),
          alert(
            'SpotterSlowSteps',
            'warning',
            'histogram_quantile(0.99, sum by (le) (rate(spotter_step_duration_seconds_bucket{%(selector)s}[15m]))) > %(stepSecondsMax)g',
            '15m',
            'Steps of Spotter take long',
            'One step in a hundred takes more than {{ $value | printf "%.1f" }} s. Give the pod more CPU, or look at the phases of a step.',
          ),
          alert(
            'SpotterPolicyPanicked',
            'warning',
            'increase(spotter_policy_panics_total{%(selector)s}[1h]) > 0',
            null,
            'A policy panicked',
            'Nodes under notice are emptied and nothing else is touched. The snapshot lies in the pod, under panicDir, for `spotter replay`.',
          ),
          alert(
            'SpotterStopped',
            'info',
            'max(spotter_stopped{%(selector)s}) == 1',
            '1h',
            'The kill switch of Spotter has been on for an hour',
            'Nothing is touched, nodes under notice neither.',
          ),
          alert(
            'SpotterKillSwitchUnreadable',
            'warning',
            'max(spotter_kill_switch_unreadable{%(selector)s}) == 1',
            '1m',
            'Spotter cannot read its kill switch',
            'Nothing is touched, not even nodes under notice, until it can be read. The condition Stopped of any pool says why.',
          ),
          alert(
            'SpotterPricesStale',
            'warning',
            'max by (source) (spotter_source_age_seconds{source=~"aws-spot-prices|rackspace-prices|trace",%(selector)s}) > %(priceAgeSecondsMax)g',
            '10m',
            'Spot prices are old',
            'The newest of {{ $labels.source }} is {{ $value | humanizeDuration }} old. After two hours a market is not bought in any more.',
          ),
          alert(
            'SpotterDrainsFail',
            'warning',
            'sum by (pool) (increase(spotter_drains_total{phase="undone",%(selector)s}[1h])) > %(failedMax)g unless sum by (pool) (increase(spotter_drains_total{phase="undone",%(selector)s}[1h])) <= sum by (pool) (increase(spotter_drains_total{phase="done",%(selector)s}[1h]))',
            '10m',
            'Drains of a pool come to nothing',
            'Of pool {{ $labels.pool }} {{ $value | printf "%.0f" }} drains were taken back within an hour. `kubectl describe cpool {{ $labels.pool }}` says what is in the way.',
          ),
          alert(
            'SpotterNodeDrainsLong',
            'warning',
            'sum by (pool) (spotter_nodes_draining{%(selector)s}) > 0 unless sum by (pool) (increase(spotter_drains_total{phase=~"done|undone",%(selector)s}[1h])) > 0',
            '1h',
            'A node has been drained for more than an hour',
            'In pool {{ $labels.pool }} no drain has ended for an hour, and one is under way.',
          ),
          alert(
            'SpotterEvictionsForbidden',
            'warning',
            'sum by (pool) (increase(spotter_evictions_total{answer=~"forbidden|several-budgets",%(selector)s}[30m])) > 0',
            null,
            'Pods cannot be evicted',
            'In pool {{ $labels.pool }} evictions are refused for good: a right is missing, a webhook refuses, or a pod has more than one PodDisruptionBudget.',
          ),
          alert(
            'SpotterRecordFails',
            'warning',
            'min by (part) (spotter_record_up{%(selector)s}) == 0',
            '15m',
            'Decisions are not recorded',
            'Something keeps decisions from the {{ $labels.part }}: the disk may be full, or the bucket out of reach. Decisions go on, and cannot be replayed.',
          ),
          alert(
            'SpotterModelFails',
            'warning',
            'min by (bundle) (spotter_model_up{%(selector)s}) == 0',
            '15m',
            'A trained bundle foretells nothing',
            'The bundle {{ $labels.bundle }} that policies name has had no answer for a quarter of an hour, and the closed form stands in. The condition ModelUsed of the pools that name it says why.',
          ),
          alert(
            'SpotterBudgetGateClosed',
            'info',
            'max by (budget) (spotter_budget_gate_closed{%(selector)s}) == 1',
            '10m',
            'A budget is spent',
            'The gate of GPUBudget {{ $labels.budget }} is closed: new pods that it counts are not admitted.',
          ),
        ]
      ],
    }],
  },

  // No series is recorded: the alerts and the dashboard ask for little.
  prometheusRules+:: { groups+: [] },
}
