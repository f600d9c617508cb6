// Package record keeps every decision so that it can be taken again: the
// snapshot that was decided on, the memory before it and the plan that came
// out, as Parquet files that DuckDB and pandas read as they are.
//
// A recording is a folder of segments, segment=00001, segment=00002 and so on.
// A segment holds one file per table:
//
//	steps       one row per decision: when, until when, memory, table sizes
//	types       instance types
//	markets     prices, history, own experience and forecasts
//	pools, workloads, templates, pdbs
//	nodes, pods tables of slots, as in the snapshot
//	ended       pods that went away since the step before
//	plan        one row per entry of the plan, with reason, words and dollars
//
// and SHA256SUMS, the digests of these files, which are checked before a segment
// is read.
//
// All tables but steps, ended and plan hold differences: a row says what the entry of that slot is
// from that step on. A full segment has a row for every entry in its first step and is read without
// those before it. Others continue the segment before, which lets a writer that runs forever
// complete short ones.
//
// A segment is written under another name, unfinished-00001, and gets its own
// when all its files are complete. What a crash leaves behind is therefore
// never taken for a recording, and the segments before it stay whole.
//
// Money is DECIMAL(18, 6) in dollars, an instant TIMESTAMP in UTC and null when
// it is not set, and what has no good shape as a column is JSON. A list without
// entries is read back as nil, except where the two mean different things.
package record
