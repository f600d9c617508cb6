package edit

import "strings"

// ObjectAt returns as KIND/NAME the object of a text that stands on a line, empty where there is
// none. It puts a fault of a changed text into words that its author knows.
func ObjectAt(written []byte, line int) string {
	f, err := Read("", written)
	if err != nil {
		return ""
	}
	name := ""
	for _, d := range f.docs {
		if d.Line <= line {
			name = strings.ToLower(text(d, "kind")) + "/" + text(d, "metadata", "name")
		}
	}
	return name
}
