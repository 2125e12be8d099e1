package builtin

import "github.com/heddle-live/heddle/engine/value"

var length = define(Spec{
	Name:   "len",
	Group:  Text,
	Params: []string{"s"},
	Doc:    "The number of bytes, in UTF-8, not of characters.",
	Functions: []Function{
		one(value.String, value.Int, evalLen),
		one(value.Bytes, value.Int, evalLen),
	},
	Examples: []Example{
		gives(5, "hello"), gives(5, "grün"), gives(2, value.OfBytes("\x00\xff")),
	},
})

func evalLen(a []value.Value) (value.Value, error) {
	return value.OfInt(int64(len(a[0].Str()))), nil
}
