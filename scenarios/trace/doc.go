// Package trace holds the prices that scenarios are run on: it reads and writes
// them as Parquet. Importing recordings of providers, generating traces and checking
// them against each other is the work of the packages below.
//
// A trace is a folder of files
//
//	provider=aws/region=us-east-1/date=2023-01-31/part-0.parquet
//
// or a single Parquet file, or a compact trace, as [Compact] makes it, with files of
// months in place of those of dates, and an index:
//
//	trace.json
//	provider=aws/region=us-east-1/month=2023-01/part-0.parquet
//
// Of that one a part can be read as a part of the whole. Rows are sorted by (zone,
// instance_type, time). Each file of a date or month begins, for every market that is
// sold at that instant, with the price then in force, so that a window can be read
// without what lies before it; a row that repeats the price in force is not a change.
// DuckDB and pandas read the same files.
//
// The columns are
//
//	time               TIMESTAMP (ms, UTC)
//	provider, region   where the path does not have them
//	zone, instance_type, product
//	spot_price         $ per node-hour; null: not offered
//	on_demand_price    $ per node-hour; null: unknown
//	available          whether a node could be had when the market was looked at
//	interruption_band  0 to 4, as AWS's Spot Instance Advisor publishes it
//	placement_score    0 to 10
//	hazard             reclaims per node-hour, a forecast from data before its time
//	true_hazard        the same, as a generator knows it
//	probe_gap          seconds since the market was looked at before: what changed
//	                   did so at one instant in (time − probe_gap, time]; 0: at time
//	                   itself; null: the row only restates what is in force
//	bid_p20, …p50, …p80  percentiles of the bids of an auction, $ per node-hour
//
// of which those after spot_price are optional.
package trace
