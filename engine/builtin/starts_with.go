package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var startsWith = define(Spec{
	Name:      "starts_with",
	Group:     Text,
	Params:    []string{"s", "part"},
	Doc:       "Whether the text begins with `part`.",
	Functions: []Function{two(value.String, value.String, value.Bool, evalStartsWith)},
	Examples: []Example{
		gives(true, "hello", "he"), gives(false, "hello", "el"), gives(true, "", ""),
	},
})

func evalStartsWith(a []value.Value) (value.Value, error) {
	return value.OfBool(strings.HasPrefix(a[0].Str(), a[1].Str())), nil
}
