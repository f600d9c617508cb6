package report

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
)

// A hover is what the script of the page says of a picture under the pointer. It finds
// the places by the scale that the picture has.
type hover struct {
	// Kind is "lines", "rows", "points" or "grid".
	Kind string `json:"kind"`

	// Unit is "$" or "%" for lines, Time what their x counts: "day" or "hour".
	Unit string `json:"unit,omitempty"`
	Time string `json:"time,omitempty"`

	// Series are the names of the lines in the order of the picture, from which their
	// values are read.
	Series []string `json:"series,omitempty"`

	// Names are those of the rows of a grid, from the top, Edges the bounds of its
	// columns in seconds since 1970, Cells the counts.
	Names []string  `json:"names,omitempty"`
	Edges []float64 `json:"edges,omitempty"`
	Cells [][]int   `json:"cells,omitempty"`

	// Marks are what can be pointed at.
	Marks []hoverMark `json:"marks,omitempty"`
}

// A hoverMark is a place in the values of the axes, with what is said of it: words, or the
// number of a run that can be opened.
type hoverMark struct {
	x, y float64
	text string
	week int
}

// MarshalJSON writes a list of x, y, and words or number.
func (m hoverMark) MarshalJSON() ([]byte, error) {
	short := func(x float64) float64 { return math.Round(x*100) / 100 }
	if m.week > 0 {
		return json.Marshal([]float64{short(m.x), short(m.y), float64(m.week)})
	}
	return json.Marshal([]any{short(m.x), short(m.y), m.text})
}

// A legendEntry is a policy in the legend of all pictures, with the name of its colour.
type legendEntry struct {
	Name   string `json:"name"`
	Colour string `json:"colour"`
}

// legend lists the policies of r in the colours that pictures have them in.
func legend(r *eval.Report) []legendEntry {
	var out []legendEntry
	for p, place := range colours(r) {
		out = append(out, legendEntry{r.Config.Policies[p], chart.Page.Property(place)})
	}
	return out
}

// rows makes a mark of each row, which texts describe from the top.
func (h *hover) rows(texts []string) {
	for i, text := range texts {
		h.Marks = append(h.Marks, hoverMark{y: float64(len(texts) - 1 - i), text: text})
	}
}

// data adds what only the script of the page reads: JSON, compressed, since it is as large
// as the rest. It holds no character that could end it.
func (p *page) data(m *markup) {
	pictures := map[string]*hover{}
	for i := range p.Scenarios {
		for _, f := range p.Scenarios[i].Figures {
			pictures[f.ID] = f.Hover
		}
	}
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(struct { // a map's keys are written in order
		Pictures map[string]*hover `json:"pictures"`
		Policies []legendEntry     `json:"policies,omitempty"`
		*weekList
	}{pictures, p.Legend, p.Weeks})
	if err != nil {
		panic("report: " + err.Error()) // numbers are finite: charts refuse others
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic("report: " + err.Error()) // a buffer takes all
	}
	m.addf("<script type=\"text/plain\" id=\"data\">%s</script>\n",
		trusted(base64.StdEncoding.EncodeToString(packed.Bytes())))
}
