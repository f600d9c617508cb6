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

// A hover is the data that the script of the page shows for the part of a picture under the
// pointer. The script finds positions with the scale in the picture.
type hover struct {
	// Kind is "lines", "rows", "points" or "grid".
	Kind string `json:"kind"`

	// Unit is "$" or "%" for lines. Time is the unit of their x: "day" or "hour".
	Unit string `json:"unit,omitempty"`
	Time string `json:"time,omitempty"`

	// Series are the names of the lines in the order of the picture. The script reads their values
	// from the picture.
	Series []string `json:"series,omitempty"`

	// Names are the names of a grid's rows from the top, Edges the bounds of its columns in seconds
	// since 1970, Cells the counts.
	Names []string  `json:"names,omitempty"`
	Edges []float64 `json:"edges,omitempty"`
	Cells [][]int   `json:"cells,omitempty"`

	// Marks are the positions with a description.
	Marks []hoverMark `json:"marks,omitempty"`
}

// A hoverMark is a position in units of the axes with its description: a text, or the number of a
// run that can be opened.
type hoverMark struct {
	x, y float64
	text string
	week int
}

// MarshalJSON encodes the mark as a list of x, y, and text or number.
func (m hoverMark) MarshalJSON() ([]byte, error) {
	short := func(x float64) float64 { return math.Round(x*100) / 100 }
	if m.week > 0 {
		return json.Marshal([]float64{short(m.x), short(m.y), float64(m.week)})
	}
	return json.Marshal([]any{short(m.x), short(m.y), m.text})
}

// A legendEntry is a policy in the legend of all pictures, and the name of its colour.
type legendEntry struct {
	Name   string `json:"name"`
	Colour string `json:"colour"`
}

// legend returns the policies of r with their colours in pictures.
func legend(r *eval.Report) []legendEntry {
	var out []legendEntry
	for p, place := range colours(r) {
		out = append(out, legendEntry{r.Config.Policies[p], chart.Page.Property(place)})
	}
	return out
}

// rows adds a mark for each row; texts are the descriptions from the top.
func (h *hover) rows(texts []string) {
	for i, text := range texts {
		h.Marks = append(h.Marks, hoverMark{y: float64(len(texts) - 1 - i), text: text})
	}
}

// data adds the data that only the script of the page reads: compressed JSON, because it is as
// large as the rest. Base64 has no character that could end the element.
func (p *page) data(m *markup) {
	pictures := map[string]*hover{}
	for i := range p.Scenarios {
		for _, f := range p.Scenarios[i].Figures {
			pictures[f.ID] = f.Hover
		}
	}
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(struct { // encoding/json sorts the keys of maps
		Pictures map[string]*hover `json:"pictures"`
		Policies []legendEntry     `json:"policies,omitempty"`
		*weekList
	}{pictures, p.Legend, p.Weeks})
	if err != nil {
		panic("report: " + err.Error()) // all numbers are finite: charts reject others
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic("report: " + err.Error()) // writing to a buffer cannot fail
	}
	m.addf("<script type=\"text/plain\" id=\"data\">%s</script>\n",
		trusted(base64.StdEncoding.EncodeToString(packed.Bytes())))
}
