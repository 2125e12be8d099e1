package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var contains = define(Spec{
	Name:      "contains",
	Group:     Text,
	Params:    []string{"s", "part"},
	Doc:       "Whether `part` stands anywhere in the text.",
	Functions: []Function{two(value.String, value.String, value.Bool, evalContains)},
	Examples: []Example{
		gives(true, "hello", "ell"), gives(false, "hello", "le"), gives(true, "a", ""),
	},
})

func evalContains(a []value.Value) (value.Value, error) {
	return value.OfBool(strings.Contains(a[0].Str(), a[1].Str())), nil
}
