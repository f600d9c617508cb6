// Package format writes comparisons for readers and programs: as a table for a terminal, Markdown,
// CSV, JSON, Parquet and JUnit. It contains the sentences that all formats share, and reads the
// JSON and Parquet that it wrote. All numbers are computed in package eval; this package does not
// run, measure or judge anything.
package format
