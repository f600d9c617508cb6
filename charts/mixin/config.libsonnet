{
  _config+:: {
    // Which series are Spotter's, as in 'job="spotter",cluster="a"'. Empty takes all.
    selector: '',

    // Where an alert leads, behind which stands its name in lower case.
    runbook: 'https://github.com/spotter-dev/spotter/blob/main/docs/runbook.md#',

    dashboardTags: ['spotter'],

    // Raising one of these makes the alert rarer.
    stepSecondsMax: 2.5,  // of one step in a hundred
    priceAgeSecondsMax: 3600,  // from 7200 on nothing is bought
    failedMax: 3,  // steps in a quarter of an hour, and drains of a pool in an hour
  },

  // _expr puts the selector and the settings into an expression.
  _expr(text):: std.strReplace(std.strReplace(text % $._config, ',}', '}'), '{}', ''),
}
