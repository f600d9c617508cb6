// Package record stores every decision so that it can be repeated: the snapshot on which it was
// made, the memory before it and the resulting plan. It uses Parquet files that DuckDB and pandas
// can read directly.
//
// A recording is a folder of segments, segment=00001, segment=00002 and so on. A segment contains
// one file per table:
//
//	steps       one row per decision: time, time of the next decision, memory, table sizes
//	types       instance types
//	markets     prices, history, own experience and forecasts
//	pools, workloads, templates, pdbs
//	nodes, pods tables of slots, as in the snapshot
//	ended       pods that ended since the previous step
//	plan        one row per entry of the plan, with reason, text and dollars
//
// It also contains SHA256SUMS, the digests of these files, which are verified before a segment is
// read.
//
// All tables except steps, ended and plan contain differences: a row is the value of a slot's entry
// starting at that step. A full segment has a row for every entry in its first step and can be read
// without earlier segments. The others continue the previous segment, so that a writer that runs
// continuously can complete short segments.
//
// A segment is written under a temporary name, unfinished-00001, and renamed when all its files are
// complete. Files left behind by a crash are therefore never treated as part of a recording, and
// earlier segments remain intact.
//
// Money is stored as DECIMAL(18, 6) in dollars, and a time as TIMESTAMP in UTC, null if it is not
// set. Values that do not fit a column are stored as JSON. Empty lists are read as nil, except
// where nil has a different meaning.
package record
