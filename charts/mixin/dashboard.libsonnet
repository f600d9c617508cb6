local source = { type: 'prometheus', uid: '${datasource}' };

// A panel has its queries by what their series are called.
local panel(type, title, unit, queries, description='', defaults={}) = {
  title: title,
  description: description,
  type: type,
  datasource: source,
  targets: [
    { refId: std.char(65 + i), datasource: source, legendFormat: queries[i][0], expr: queries[i][1] }
    for i in std.range(0, std.length(queries) - 1)
  ],
  fieldConfig: { defaults: { unit: unit } + defaults, overrides: [] },
  options: {},
};
local stat(title, unit, queries, description='') = panel('stat', title, unit, queries, description);
local graph(title, unit, queries, description='', defaults={}) = panel('timeseries', title, unit, queries, description, defaults);
local share = { min: 0, max: 1 };

// A team has what the nodes of its namespaces saved. What no namespace of a team uses is a line of its own.
local byNamespace = 'sum by (namespace) (spotter_namespace_saved_dollars{pool=~"$pool",%(selector)s})';
local teams = 'max by (namespace, %(teamLabel)s) (kube_namespace_labels{%(teamLabel)s!="",%(kubeSelector)s})';
local byTeam(label) = [
  ['{{' + label + '}}', 'topk(10, sum by (%(teamLabel)s) (' + byNamespace + ' * on (namespace) group_left (%(teamLabel)s) ' + teams + '))'],
  ['no team', 'sum(' + byNamespace + ' unless on (namespace) ' + teams + ')'],
];

// Each section has lines of panels that are as wide as each other.
local sections(config) = [
  {
    title: 'What it saves',
    lines: [
      [
        stat('Saved per hour', 'currencyUSD', [['', 'sum(spotter_pool_savings_dollars_per_hour{pool=~"$pool",%(selector)s})']], 'What the pools cost less per hour than the same nodes on demand.'),
        stat('Saved so far', 'currencyUSD', [['', 'sum(spotter_pool_saved_dollars{pool=~"$pool",against="on-demand",%(selector)s})']], 'Against the same nodes on demand, since each pool was first seen.'),
        stat('Shadow: would have been saved', 'currencyUSD', [['', 'sum(spotter_pool_shadow_saved_dollars{pool=~"$pool",%(selector)s})']], 'By moves that were not made since the pool is not active.'),
        stat('Leads / acts / stopped', 'short', [
          ['leads', 'max(spotter_leader{%(selector)s})'],
          ['may act', 'max(spotter_active{%(selector)s})'],
          ['kill switch', 'max(spotter_stopped{%(selector)s})'],
        ]),
      ],
      [
        graph('Paid and on demand', 'currencyUSD', [
          ['paid', 'sum(rate(spotter_pool_paid_dollars{pool=~"$pool",%(selector)s}[1h])) * 3600'],
          ['the same on demand', 'sum(rate(spotter_pool_on_demand_dollars{pool=~"$pool",%(selector)s}[1h])) * 3600'],
        ], 'Dollars per hour.'),
        graph('Saved by namespace', 'currencyUSD', [['{{namespace}}', 'topk(10, sum by (namespace) (spotter_namespace_saved_dollars{pool=~"$pool",%(selector)s}))']]),
      ] + (if config.teamLabel == '' then [] else [graph('Saved by team', 'currencyUSD', byTeam(config.teamLabel), 'By the label of namespaces.')]) + [
        graph('Against commitments (modelled)', 'currencyUSD', [['{{against}}', 'sum by (against) (spotter_pool_saved_dollars{pool=~"$pool",%(selector)s})']]),
      ],
    ],
  },
  {
    title: 'What runs',
    lines: [
      [
        graph('Spot share', 'percentunit', [['{{pool}}', 'spotter_pool_spot_share{pool=~"$pool",%(selector)s}']], defaults=share),
        graph('Nodes', 'short', [['{{pool}} {{capacity_type}}', 'sum by (pool, capacity_type) (spotter_pool_nodes{pool=~"$pool",%(selector)s})']]),
        graph('Nodes by market', 'short', [['{{market}}', 'topk(15, spotter_market_nodes{%(selector)s})']]),
      ],
      [
        graph('Prices of markets in use', 'currencyUSD', [['{{market}}', 'topk(15, spotter_market_price_dollars{%(selector)s})']]),
        graph('Hazard of markets in use', 'short', [['{{market}}', 'topk(15, spotter_market_hazard{%(selector)s})']], 'Reclaims per node-hour expected.'),
        graph('Age of sources', 's', [['{{source}}', 'spotter_source_age_seconds{%(selector)s}']]),
      ],
    ],
  },
  {
    title: 'What is done',
    lines: [
      [
        graph('Drains by how they ended', 'short', [['{{phase}}', 'sum by (phase) (increase(spotter_drains_total{pool=~"$pool",phase=~"done|undone|held",%(selector)s}[1h]))']]),
        graph('Nodes being drained', 'short', [['{{pool}} {{phase}}', 'sum by (pool, phase) (spotter_nodes_draining{pool=~"$pool",%(selector)s})']]),
        graph('Time of a drain', 's', [
          ['median', 'histogram_quantile(0.5, sum by (le) (rate(spotter_drain_duration_seconds_bucket{pool=~"$pool",%(selector)s}[6h])))'],
          ['95 %', 'histogram_quantile(0.95, sum by (le) (rate(spotter_drain_duration_seconds_bucket{pool=~"$pool",%(selector)s}[6h])))'],
        ]),
      ],
      [
        graph('Evictions by answer', 'short', [['{{answer}}', 'sum by (answer) (increase(spotter_evictions_total{pool=~"$pool",%(selector)s}[1h]))']]),
        graph('Entries of plans', 'short', [['{{kind}} {{outcome}}', 'sum by (kind, outcome) (increase(spotter_plan_entries_total{pool=~"$pool",%(selector)s}[1h]))']]),
        graph('Shadow: moves that would have been made', 'short', [['{{pool}}', 'spotter_pool_shadow_moves{pool=~"$pool",%(selector)s}']]),
      ],
    ],
  },
  {
    title: 'Budgets',
    lines: [
      [
        graph('Used of the quota', 'percentunit', [['{{budget}}', 'spotter_budget_used_gpu_hours{%(selector)s} / spotter_budget_quota_gpu_hours{%(selector)s}']]),
        graph('Closed gates', 'short', [['{{budget}}', 'spotter_budget_gate_closed{%(selector)s}']], defaults=share),
        graph('Loss budgets: what is left', 'currencyUSD', [['{{pool}}', 'spotter_pool_loss_budget_left_dollars{pool=~"$pool",%(selector)s}']], 'What Spot may still cost; below 0 it has cost more, and the pool is on demand.'),
        graph('On demand since their loss budget is used up', 'short', [['{{pool}}', 'spotter_pool_loss_budget_used_up{pool=~"$pool",%(selector)s}']], defaults=share),
      ],
    ],
  },
  {
    title: 'The controller',
    lines: [
      [
        graph('Time of a step', 's', [
          ['median', 'histogram_quantile(0.5, sum by (le) (rate(spotter_step_duration_seconds_bucket{%(selector)s}[15m])))'],
          ['99 %', 'histogram_quantile(0.99, sum by (le) (rate(spotter_step_duration_seconds_bucket{%(selector)s}[15m])))'],
        ]),
        graph('Time by part of a step', 's', [['{{phase}}', 'sum by (phase) (rate(spotter_step_phase_duration_seconds_sum{%(selector)s}[15m])) / sum by (phase) (rate(spotter_step_phase_duration_seconds_count{%(selector)s}[15m]))']]),
        graph('Steps and why they were taken', 'short', [
          ['{{result}}', 'sum by (result) (increase(spotter_decisions_total{%(selector)s}[15m]))'],
          ['wake: {{reason}}', 'sum by (reason) (increase(spotter_wakes_total{%(selector)s}[15m]))'],
        ]),
      ],
      [
        graph('Writes to the API server per second', 'wps', [
          ['{{verb}}', 'sum by (verb) (rate(spotter_api_writes_total{%(selector)s}[5m]))'],
          ['sent back: {{verb}}', 'sum by (verb) (rate(spotter_api_writes_throttled_total{%(selector)s}[5m]))'],
        ]),
        graph('Writes kept back by our own limit', 's', [['{{verb}}', 'sum by (verb) (rate(spotter_api_write_wait_seconds_total{%(selector)s}[5m]))']]),
        graph('Record', 'short', [
          ['up: {{part}}', 'spotter_record_up{%(selector)s}'],
          ['decisions left out', 'increase(spotter_record_lost_steps_total{%(selector)s}[1h])'],
        ]),
      ],
    ],
  },
  {
    title: 'Trained models',
    lines: [
      [
        graph('Bundle foretells', 'short', [['{{bundle}} {{fingerprint}}', 'min by (bundle, fingerprint) (spotter_model_up{%(selector)s})']], '1 while forecasts come from the bundle that policies name, 0 while they come from the closed form.'),
        graph('Forecasts and values by what became of them', 'short', [
          ['forecasts {{outcome}}', 'sum by (outcome) (increase(spotter_model_forecasts_total{%(selector)s}[1h]))'],
          ['pools {{outcome}}', 'sum by (outcome) (increase(spotter_model_values_total{%(selector)s}[1h]))'],
        ]),
        graph('Steps without an answer of the bundle', 'short', [['{{reason}}', 'sum by (reason) (increase(spotter_model_failures_total{%(selector)s}[1h]))']]),
      ],
    ],
  },
];

// placed returns the panels one under the other, from the number and the height on that
// are given: a section takes one line more, that of its title.
local placed(sections) = std.foldl(
  function(all, section)
    local titled = all {
      panels+: [{ type: 'row', title: section.title, collapsed: false, panels: [], id: all.id, gridPos: { x: 0, y: all.y, w: 24, h: 1 } }],
      id+: 1,
      y+: 1,
    };
    std.foldl(
      function(all, line)
        local w = 24 / std.length(line), h = if line[0].type == 'stat' then 5 else 7;
        all {
          panels+: [line[i] { id: all.id + i, gridPos: { x: i * w, y: all.y, w: w, h: h } } for i in std.range(0, std.length(line) - 1)],
          id+: std.length(line),
          y+: h,
        },
      section.lines,
      titled
    ),
  sections,
  { panels: [], id: 1, y: 0 }
).panels;

{
  local mixin = self,
  local pools = mixin._expr('label_values(spotter_pool_active{%(selector)s}, pool)'),

  grafanaDashboards+:: {
    'spotter.json': {
      uid: 'spotter',
      title: 'Spotter',
      tags: mixin._config.dashboardTags,
      timezone: 'utc',
      schemaVersion: 39,
      version: 1,
      editable: true,
      refresh: '1m',
      time: { from: 'now-24h', to: 'now' },
      annotations: { list: [] },
      templating: {
        list: [
          { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
          {
            name: 'pool',
            type: 'query',
            label: 'Pool',
            datasource: source,
            query: pools,
            definition: pools,
            multi: true,
            includeAll: true,
            allValue: '.*',
            refresh: 2,
            current: { text: 'All', value: '$__all' },
          },
        ],
      },
      panels: [
        panel { [if 'targets' in panel then 'targets']: [t { expr: mixin._expr(t.expr) } for t in panel.targets] }
        for panel in placed(sections(mixin._config))
      ],
    },
  },
}
