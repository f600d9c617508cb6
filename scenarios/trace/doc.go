// Package trace reads and writes the prices that scenarios are run on, as Parquet. The packages
// below it import recordings of providers, generate traces and compare traces.
//
// A trace is a folder of files
//
//	provider=aws/region=us-east-1/date=2023-01-31/part-0.parquet
//
// or a single Parquet file, or a compact trace, as [Compact] writes it, with files per month
// instead of per date, and an index:
//
//	trace.json
//	provider=aws/region=us-east-1/month=2023-01/part-0.parquet
//
// A part of a compact trace can be read without the rest. Rows are sorted by (zone, instance_type,
// time). The file of a date or month starts with the current price of every market that is offered
// at its start, so that a window can be read without earlier files. A row that repeats the current
// price is not a change. DuckDB and pandas can read the files.
//
// The columns are
//
//	time               TIMESTAMP (ms, UTC)
//	provider, region   if they are not in the path
//	zone, instance_type, product
//	spot_price         $ per node-hour; null: not offered
//	on_demand_price    $ per node-hour; null: unknown
//	available          whether a node could be launched when the market was observed
//	interruption_band  0 to 4, as published by AWS's Spot Instance Advisor
//	placement_score    0 to 10
//	hazard             forecast of reclaims per node-hour, from earlier data only
//	true_hazard        reclaims per node-hour that a generator used
//	probe_gap          seconds since the market was last observed: the change
//	                   happened in (time − probe_gap, time]; 0: at time itself;
//	                   null: the row only repeats the current price
//	bid_p20, …p50, …p80  percentiles of the bids of an auction, $ per node-hour
//
// The columns after spot_price are optional.
package trace
