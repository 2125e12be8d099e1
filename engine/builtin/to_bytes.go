package builtin

import "github.com/heddle-live/heddle/engine/value"

var toBytes = define(Spec{
	Name:   "to_bytes",
	Group:  Casts,
	Params: []string{"s"},
	Doc:    "The bytes of a string in UTF-8.",
	Functions: []Function{one(value.String, value.Bytes,
		func(a []value.Value) (value.Value, error) {
			return value.OfBytes(a[0].Str()), nil
		})},
	Examples: []Example{gives(value.OfBytes("gr\xc3\xbcn"), "grün")},
})
