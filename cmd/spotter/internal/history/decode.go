package history

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"compress/gzip"
	jsoniter "github.com/json-iterator/go"

	"github.com/spotter-dev/spotter/policy"
)

// A fold consumes the series of a response, one after the other. It receives the labels of a series
// and returns the consumer of its points, which come in order of time, or nil to skip the series.
type fold = func(labels map[string]string) sink

type sink = func(at policy.Time, v float64)

// read folds a response. It keeps no more than the labels of one series in memory.
func (a *answer) read(f fold) error {
	file, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	if err := decode(z, f); err != nil {
		return fmt.Errorf("the answer kept in %s: %w", a.path, err)
	}
	return nil
}

// decode folds a matrix in the format of query_range.
func decode(r io.Reader, f fold) error {
	it := jsoniter.Parse(jsoniter.ConfigDefault, r, 1<<16)
	it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		switch key {
		case "status":
			if s := it.ReadString(); s != "success" {
				it.ReportError("status", strconv.Quote(s))
			}
		case "data":
			it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
				switch key {
				case "resultType":
					if t := it.ReadString(); t != "matrix" {
						it.ReportError("resultType", strconv.Quote(t)+" is no matrix")
					}
				case "result":
					it.ReadArrayCB(func(it *jsoniter.Iterator) bool { return decodeSeries(it, f) })
				default:
					it.Skip()
				}
				return it.Error == nil
			})
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	if it.Error != nil && it.Error != io.EOF { //nolint:errorlint // jsoniter compares it so
		return it.Error
	}
	return nil
}

func decodeSeries(it *jsoniter.Iterator, f fold) bool {
	var take func(at policy.Time, v float64)
	begun := false
	it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		switch {
		case key == "metric":
			labels := map[string]string{}
			it.ReadMapCB(func(it *jsoniter.Iterator, name string) bool {
				labels[name] = it.ReadString()
				return it.Error == nil
			})
			take, begun = f(labels), true
		case key != "values" || begun && take == nil:
			it.Skip()
		case !begun:
			it.ReportError("values", "they come before the labels")
		default:
			it.ReadArrayCB(func(it *jsoniter.Iterator) bool { return decodePoint(it, take) })
		}
		return it.Error == nil
	})
	return it.Error == nil
}

// decodePoint decodes a point such as [1700000000.5,"3"]. It skips NaN.
func decodePoint(it *jsoniter.Iterator, take func(at policy.Time, v float64)) bool {
	if !it.ReadArray() {
		it.ReportError("values", "a point is empty")
		return false
	}
	at := it.ReadFloat64()
	if !it.ReadArray() {
		it.ReportError("values", "a point has no value")
		return false
	}
	text := it.ReadStringAsSlice()
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		it.ReportError("values", err.Error())
	}
	if it.ReadArray() {
		it.ReportError("values", "a point has more than a value")
	}
	if v == v && it.Error == nil { // NaN is not equal to itself
		take(policy.Time(at*1000+0.5), v)
	}
	return it.Error == nil
}
