package wire

import (
	"encoding/hex"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page that describes the format has one section for each message, whose
// example is one of the vectors.
func TestExamplesOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/moq-lite.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile("(?ms)^### ([A-Z_]+)\n(.*?)^Example: `([0-9a-f ]+)`")
	seen := make(map[string]bool)
	for _, m := range section.FindAllStringSubmatch(string(page), -1) {
		name := strings.ToLower(m[1])
		i := slices.IndexFunc(codecs, func(c codec) bool { return c.name == name })
		if i < 0 {
			t.Errorf("%s is no message", m[1])
			continue
		}
		seen[name] = true
		b, err := hex.DecodeString(strings.ReplaceAll(m[3], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := codecs[i].decode(b); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if !slices.ContainsFunc(readVectors(t, codecs[i].file()), func(v vector) bool {
			return v.hex == m[3]
		}) {
			t.Errorf("%s: the example is not among the vectors", m[1])
		}
	}
	for _, c := range codecs {
		if !seen[c.name] {
			t.Errorf("%s has no section with an example", c.name)
		}
	}
}
