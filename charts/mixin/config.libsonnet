{
  _config+:: {
    // Which series are Spotter's, as in 'job="spotter",cluster="a"'. Empty takes all.
    selector: '',

    // The label of namespaces that says whose they are, as kube-state-metrics has it: 'label_team', with
    // its --metric-labels-allowlist=namespaces=[team]. Empty leaves savings by team out.
    teamLabel: '',

    // Which series of kube-state-metrics are those of the cluster, as in 'cluster="a"'. Empty takes all.
    kubeSelector: '',

    // Where an alert leads, behind which stands its name in lower case.
    runbook: 'https://github.com/spotter-dev/spotter/blob/main/docs/runbook.md#',

    dashboardTags: ['spotter'],

    // Raising one of these makes the alert rarer.
    stepSecondsMax: 2.5,  // of one step in a hundred
    priceAgeSecondsMax: 3600,  // from 7200 on nothing is bought
    failedMax: 3,  // steps in a quarter of an hour, and drains of a pool in an hour
  },

  // _expr puts the selectors and the settings into an expression.
  _expr(text):: std.strReplace(std.strReplace(text % $._config, ',}', '}'), '{}', ''),
}
