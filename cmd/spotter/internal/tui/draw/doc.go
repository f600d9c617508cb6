// Package draw draws the parts of the terminal UI: the grid of nodes, braille charts, tables, the
// decision log, inspectors and the timeline.
//
// Every part is a value with a Draw method that fills a [Canvas] of any size and never writes
// outside it. A cell holds a rune and a [Style], which names the meaning of the cell and not a
// colour. A [Theme] converts meanings to the escape sequences of one kind of terminal when the
// whole screen is rendered, so the text is the same with every theme, and equal neighbours share a
// sequence. The package keeps no state, reads no clock and does no I/O.
//
// Text is cut and wrapped by x/ansi, colours are written by termenv, and package screen draws whole
// lines and pages with bubbles in the styles of [Theme.Style]. The canvas, the tables and the
// charts are implemented here: lipgloss renders each piece of text separately and x/cellbuf
// allocates each cell, so that a screen of 200 by 60 takes them ten to twenty times as long, more
// than the time of a frame. The chart libraries for terminals have no steps, gaps, marks or series
// that can be distinguished without colour.
package draw
