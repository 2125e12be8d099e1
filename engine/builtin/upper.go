package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var upper = define(Spec{
	Name:      "upper",
	Group:     Text,
	Params:    []string{"s"},
	Doc:       "The text in upper case, by Unicode.",
	Functions: []Function{one(value.String, value.String, evalUpper)},
	Examples:  []Example{gives("GRÜN 1", "grün 1"), gives("", "")},
})

func evalUpper(a []value.Value) (value.Value, error) {
	return text(strings.ToUpper(a[0].Str()), "upper", a)
}
