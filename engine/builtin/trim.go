package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var trim = define(Spec{
	Name:      "trim",
	Group:     Text,
	Params:    []string{"s"},
	Doc:       "The text without white space at its beginning and end.",
	Functions: []Function{one(value.String, value.String, evalTrim)},
	Examples:  []Example{gives("a b", "  a b\n"), gives("", " \t")},
})

func evalTrim(a []value.Value) (value.Value, error) {
	return value.OfString(strings.TrimSpace(a[0].Str())), nil
}
