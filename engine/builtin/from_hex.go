package builtin

import (
	"encoding/hex"

	"github.com/heddle-live/heddle/engine/value"
)

var fromHex = define(Spec{
	Name:      "from_hex",
	Group:     Casts,
	Params:    []string{"s"},
	Doc:       "The bytes that hexadecimal digits spell, in lower or upper case.",
	Functions: []Function{one(value.String, value.Bytes, evalFromHex)},
	Examples: []Example{
		gives(value.OfBytes("\x00\xff"), "00fF"), fails(BadCast, "0"), fails(BadCast, "zz"),
	},
})

func evalFromHex(a []value.Value) (value.Value, error) {
	b, err := hex.DecodeString(a[0].Str())
	if err != nil {
		return value.Value{}, failure(BadCast, "from_hex", a)
	}
	return value.OfBytes(string(b)), nil
}
