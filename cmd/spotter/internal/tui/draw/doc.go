// Package draw draws the parts of the terminal UI: the grid of nodes, braille
// charts, tables, the decision log, inspectors, the scrub bar.
//
// Every part is a value with a Draw method that fills a [Canvas], whatever its
// size, and never writes outside it. A cell holds a rune and a [Style], which
// names what the cell means and not a colour; a [Theme] turns meanings into the
// escape sequences of one kind of terminal when the whole screen is written, so
// the text is the same with every theme, and equal neighbours share a sequence.
// Nothing here keeps state, asks the time or reads anything.
//
// The canvas and the charts are our own: the chart libraries for terminals
// render every cell through a style, so that one chart costs more time than a
// whole screen may, and they have no gaps, marks or series that can be told
// apart without colour.
package draw
