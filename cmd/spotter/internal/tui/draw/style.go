package draw

// A Style is the meaning of a cell. The zero Style is the terminal's default.
type Style struct {
	// Ink is the meaning of the rune, and Ground that of the background.
	Ink, Ground Ink

	Attr Attr
}

// An Attr is a set of attributes.
type Attr uint8

// The attributes. Selected is a background colour if the terminal has enough colours, otherwise
// reverse video.
const (
	Bold Attr = 1 << iota
	Reverse
	Selected
)

// An Ink is the meaning of a rune or a background.
type Ink uint8

// The inks. The zero Ink is the terminal's default foreground or background.
const (
	Own Ink = iota

	// Muted is secondary text, Faint is borders and grid lines, Title is headings, and Accent is
	// the focused element and names of keys.
	Muted
	Faint
	Title
	Accent

	Good
	Warn
	Bad

	// Spot and OnDemand are the capacity types, for text.
	Spot
	OnDemand

	// Launching, Draining, Leaving and Notice are the states of a node; Alarm is the background of
	// a notice, and AlarmInk the text on it.
	Launching
	Draining
	Leaving
	Notice
	Alarm
	AlarmInk

	// Now is the line at the time shown; Stripe is the background of header and status lines;
	// Chosen is the background of a selection.
	Now
	Stripe
	Chosen

	// Spot0 to Spot3 and OnDemand0 to OnDemand3 are cells of nodes by age, from the youngest to the
	// oldest.
	Spot0
	Spot1
	Spot2
	Spot3
	OnDemand0
	OnDemand1
	OnDemand2
	OnDemand3

	// Series0 to Series7 are the lines of a chart.
	Series0
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	Series7

	inks // number of inks
)

// SeriesInk returns the ink of the i-th line of a chart. Inks repeat after eight lines.
func SeriesInk(i int) Ink { return Series0 + Ink(max(i, 0)%8) }

// ink returns the style with only an ink.
func ink(i Ink) Style { return Style{Ink: i} }

// bold returns s in bold.
func (s Style) bold() Style { s.Attr |= Bold; return s }
