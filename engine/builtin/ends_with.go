package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var endsWith = define(Spec{
	Name:      "ends_with",
	Group:     Text,
	Params:    []string{"s", "part"},
	Doc:       "Whether the text ends with `part`.",
	Functions: []Function{two(value.String, value.String, value.Bool, evalEndsWith)},
	Examples: []Example{
		gives(true, "hello", "lo"), gives(false, "hello", "l"), gives(true, "a", ""),
	},
})

func evalEndsWith(a []value.Value) (value.Value, error) {
	return value.OfBool(strings.HasSuffix(a[0].Str(), a[1].Str())), nil
}
