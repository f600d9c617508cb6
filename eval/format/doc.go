// Package format writes comparisons for readers and for programs: as a table for a
// terminal, Markdown, CSV, JSON, Parquet and JUnit. It has
// the sentences that all of them say, and reads back what it wrote as JSON or Parquet. What is
// said is computed in package eval; nothing here runs, measures or judges.
package format
