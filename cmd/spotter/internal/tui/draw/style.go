package draw

// A Style is what a cell means. The zero Style is the terminal's own.
type Style struct {
	// Ink is what the rune means, Ground what the background behind it means.
	Ink, Ground Ink

	Attr Attr
}

// An Attr is a set of attributes.
type Attr uint8

// The attributes. Selected is a background where the terminal has colours to
// spare, else reverse video.
const (
	Bold Attr = 1 << iota
	Reverse
	Selected
)

// An Ink is the meaning of a rune or a background.
type Ink uint8

// The inks. The zero Ink is the terminal's own foreground or background.
const (
	Own Ink = iota

	// Muted is secondary text, Faint borders and grid lines, Title headings,
	// Accent what has the focus and names of keys.
	Muted
	Faint
	Title
	Accent

	Good
	Warn
	Bad

	// Spot and OnDemand are the two ways to buy, for text.
	Spot
	OnDemand

	// Launching, Draining, Leaving and Notice are the states of a node; Alarm is
	// the background of a notice, AlarmInk what stands on it.
	Launching
	Draining
	Leaving
	Notice
	Alarm
	AlarmInk

	// Now is the line at the shown time; Stripe the background of header and status
	// lines; Chosen the background of what is selected.
	Now
	Stripe
	Chosen

	// Spot0 to Spot3 and OnDemand0 to OnDemand3 are cells of nodes by age, from
	// the youngest to the oldest.
	Spot0
	Spot1
	Spot2
	Spot3
	OnDemand0
	OnDemand1
	OnDemand2
	OnDemand3

	// Series0 and the seven after it are lines of a chart.
	Series0
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	Series7

	inks // how many there are
)

// SeriesInk returns the ink of the i-th line of a chart; they repeat after eight.
func SeriesInk(i int) Ink { return Series0 + Ink(max(i, 0)%8) }

// ink returns the style with only an ink.
func ink(i Ink) Style { return Style{Ink: i} }

// bold returns s in bold.
func (s Style) bold() Style { s.Attr |= Bold; return s }
