// Command openfga prints the consolidated tests of OpenFGA as JSON. They come with
// its Go module, which is a module of this directory's alone: nothing of Heddle
// depends on it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/openfga/openfga/assets"
	"gopkg.in/yaml.v3"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openfga:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := assets.EmbedTests.ReadFile("tests/consolidated_1_1_tests.yaml")
	if err != nil {
		return err
	}
	var tests map[string]any
	if err := yaml.Unmarshal(text, &tests); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(tests)
}
