package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var lower = define(Spec{
	Name:      "lower",
	Group:     Text,
	Params:    []string{"s"},
	Doc:       "The text in lower case, by Unicode.",
	Functions: []Function{one(value.String, value.String, evalLower)},
	Examples:  []Example{gives("grün 1", "GRÜN 1"), gives("", "")},
})

func evalLower(a []value.Value) (value.Value, error) {
	return text(strings.ToLower(a[0].Str()), "lower", a)
}
