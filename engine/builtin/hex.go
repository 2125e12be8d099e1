package builtin

import (
	"encoding/hex"

	"github.com/heddle-live/heddle/engine/value"
)

var toHex = define(Spec{
	Name:      "hex",
	Group:     Casts,
	Params:    []string{"b"},
	Doc:       "The bytes as hexadecimal digits in lower case.",
	Functions: []Function{one(value.Bytes, value.String, evalHex)},
	Examples:  []Example{gives("00ff", value.OfBytes("\x00\xff"))},
})

func evalHex(a []value.Value) (value.Value, error) {
	s := a[0].Str()
	if 2*len(s) > LengthMax {
		return value.Value{}, failure(TooLong, "hex", a)
	}
	return value.OfString(hex.EncodeToString([]byte(s))), nil
}
