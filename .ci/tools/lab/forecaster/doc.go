// Package forecaster makes the data that a forecaster of markets is trained on,
// and measures one on data that was held out.
//
// A row is what a cluster knew of one market at one instant, built by the very
// builder that feeds the forecaster in runs, and what became of that market
// afterwards. What a cluster knows is what it met itself, so each realisation has
// one: it holds some nodes in some markets at some times, is refused and loses
// nodes as the weather of the realisation has it. The weather is recorded, or drawn
// from the laws of package weather.
package forecaster
