package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// packedMap reports whether a MessagePack map can begin with b.
func packedMap(b byte) bool { return b&0xf0 == 0x80 || b == 0xde || b == 0xdf }

// depthMax is how deep maps and lists may be nested. Kubernetes objects are some
// twenty deep.
const depthMax = 200

// errDeep is returned for a value that is nested too deeply.
var errDeep = errors.New("it is nested too deeply")

// unpack reads one value of MessagePack into the types of encoding/json. A map key that is
// not a string becomes its JSON text, since Rust writes tuples and numbers as keys.
func unpack(b []byte) (any, error) {
	v, rest, err := unpackValue(b, 0)
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", len(b)-len(rest), err)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("byte %d: %d bytes follow the end", len(b)-len(rest), len(rest))
	}
	return v, nil
}

func unpackValue(b []byte, depth int) (v any, rest []byte, err error) {
	if depth > depthMax {
		return nil, b, errDeep
	}
	if len(b) == 0 {
		return nil, b, msgp.ErrShortBytes
	}
	switch msgp.NextType(b) {
	case msgp.NilType:
		rest, err = msgp.ReadNilBytes(b)
	case msgp.BoolType:
		v, rest, err = msgp.ReadBoolBytes(b)
	case msgp.IntType:
		var n int64
		n, rest, err = msgp.ReadInt64Bytes(b)
		v = json.Number(strconv.FormatInt(n, 10))
	case msgp.UintType:
		var n uint64
		n, rest, err = msgp.ReadUint64Bytes(b)
		v = json.Number(strconv.FormatUint(n, 10))
	case msgp.Float32Type, msgp.Float64Type:
		var x float64
		x, rest, err = msgp.ReadFloat64Bytes(b)
		v = json.Number(strconv.FormatFloat(x, 'g', -1, 64))
	case msgp.StrType:
		v, rest, err = msgp.ReadStringBytes(b)
	case msgp.ArrayType:
		return unpackList(b, depth)
	case msgp.MapType:
		return unpackMap(b, depth)
	default:
		err = fmt.Errorf("a %s is not expected", msgp.NextType(b))
	}
	if err != nil {
		return nil, b, err
	}
	return v, rest, nil
}

func unpackList(b []byte, depth int) (any, []byte, error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return nil, b, err
	}
	list := []any{} // grows as elements arrive: n may be wrong
	for range n {
		var v any
		if v, rest, err = unpackValue(rest, depth+1); err != nil {
			return nil, rest, err
		}
		list = append(list, v)
	}
	return list, rest, nil
}

func unpackMap(b []byte, depth int) (any, []byte, error) {
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return nil, b, err
	}
	m := map[string]any{}
	for range n {
		var k, v any
		if k, rest, err = unpackValue(rest, depth+1); err != nil {
			return nil, rest, err
		}
		key, isText := k.(string)
		if !isText {
			text, err := json.Marshal(k)
			if err != nil {
				return nil, rest, err
			}
			key = string(text)
		}
		if v, rest, err = unpackValue(rest, depth+1); err != nil {
			return nil, rest, err
		}
		m[key] = v
	}
	return m, rest, nil
}
