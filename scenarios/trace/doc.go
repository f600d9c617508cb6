// Package trace holds the prices that worlds are run on: it reads and writes
// them as Parquet, imports recordings of providers, generates synthetic ones,
// and says what a trace contains.
//
// A trace is a folder of files
//
//	provider=aws/region=us-east-1/date=2023-01-31/part-0.parquet
//
// or a single Parquet file. Rows are sorted by (zone, instance type, time).
// Each file of a date begins, for every market that is sold at 00:00, with the
// price then in force, so that a window can be read without what lies before
// it; a row that repeats the price in force is not a change. DuckDB and pandas
// read the same files.
package trace
