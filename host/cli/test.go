package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/config"
	"github.com/heddle-live/heddle/host/scenario"
)

// testSuffix is what the names of scenario files end in.
const testSuffix = ".test"

func testCommand() *cobra.Command {
	t := new(tester)
	cmd := &cobra.Command{
		Use:   "test FILE [TESTS...]",
		Short: "Test a program without a server",
		Long: `Play scenarios against a program: given facts, what is written, and the rows,
changes and refusals to expect. Each scenario has a fresh graph of its own, in
this process. TESTS are files, and directories whose files that end in .test are
taken; without any, the directory tests beside FILE. What differs is printed row by row. The
exit status is 1 if a test fails, 2 if the program or a test cannot be read.`,
		Example: `  heddle test shop.heddle tests/
  heddle test shop.heddle tests/claims.test --verbose
  heddle test shop.heddle --run "two racers" --json`,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usageError(cmd, cmd.CommandPath()+" takes FILE [TESTS...], and 0 were given")
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, err.Error())
	})
	cmd.Flags().BoolVar(&t.asJSON, "json", false, "print each test as one line of JSON")
	cmd.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "name the tests that pass, too")
	cmd.Flags().StringVar(&t.only, "run", "", "only tests whose name has this text in it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		t.out = cmd.OutOrStdout()
		err := t.run(args[0], args[1:])
		if e, ok := errors.AsType[*Error](err); ok {
			e.asJSON = t.asJSON
		}
		return err
	}
	return cmd
}

// tester plays the scenarios of one command.
type tester struct {
	out             io.Writer
	asJSON, verbose bool
	only            string

	tests, failed int
}

// tested is a test as one line of JSON.
type tested struct {
	File     string          `json:"file"`
	Line     int             `json:"line"`
	Test     string          `json:"test"`
	Passed   bool            `json:"passed"`
	Failures []testedFailure `json:"failures,omitempty"`
}

type testedFailure struct {
	Line int    `json:"line"`
	Step string `json:"step"`
	Text string `json:"text"`
}

func (t *tester) run(program string, places []string) error {
	checked, err := readProgram(program)
	if err != nil {
		return err
	}
	if len(places) == 0 {
		places = []string{filepath.Join(filepath.Dir(program), "tests")}
	}
	names, err := testFiles(places)
	if err != nil {
		return err
	}
	files := make([]*scenario.File, len(names))
	var wrong []string
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return &Error{Code: ExitUsage, Text: err.Error()}
		}
		if files[i], err = scenario.Read(checked, string(text)); err != nil {
			wrong = append(wrong, inFile(name, err))
		}
	}
	if wrong != nil {
		return &Error{Code: ExitUsage, Text: strings.Join(wrong, "\n")}
	}
	for i, name := range names {
		if err := t.play(name, files[i]); err != nil {
			return err
		}
	}
	return t.sum(len(names))
}

// readProgram reads and checks a program.
func readProgram(name string) (*analysis.Program, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, &Error{Code: ExitUsage, Text: err.Error()}
	}
	tree, err := parse.Program(string(text))
	if err != nil {
		return nil, &Error{Code: ExitUsage, Text: inFile(name, err)}
	}
	program, err := analysis.Analyse(tree, string(text))
	if err != nil {
		return nil, &Error{Code: ExitUsage, Text: inFile(name, err)}
	}
	return program, nil
}

// inFile words errors with the place in their file.
func inFile(name string, err error) string {
	list, ok := errors.AsType[parse.Errors](err)
	if !ok {
		return name + ": " + err.Error()
	}
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = name + ", " + e.Detail()
	}
	return strings.Join(texts, "\n")
}

// testFiles returns the files that places name, each once, those of a directory by
// name.
func testFiles(places []string) ([]string, error) {
	var names []string
	for _, place := range places {
		err := filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (name == place || strings.HasSuffix(name, testSuffix)) &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, &Error{
				Code: ExitUsage, Text: err.Error(),
				Hint: "name a file, or a directory with files that end in " + testSuffix,
			}
		}
	}
	if len(names) == 0 {
		return nil, &Error{
			Code: ExitUsage,
			Text: strings.Join(places, ", ") + " has no file that ends in " + testSuffix,
		}
	}
	return names, nil
}

// play plays the tests of a file and prints how they went.
func (t *tester) play(name string, f *scenario.File) error {
	// As much work as a server that is not told otherwise lets a graph do.
	defaults := config.Default()
	limits := scenario.Limits{
		QuerySteps: uint64(defaults.QuerySteps), WatchSteps: uint64(defaults.WatchSteps),
		Derived: engine.Limits{
			CommitRows: uint64(defaults.CommitRows), GraphRows: uint64(defaults.GraphRows),
			CommitBytes: uint64(defaults.CommitBytes), GraphBytes: uint64(defaults.GraphBytes),
		},
	}
	headed := false
	for i := range f.Tests {
		test := &f.Tests[i]
		if !strings.Contains(test.Name, t.only) {
			continue
		}
		result := test.Run(limits)
		t.tests++
		if result.Failures != nil {
			t.failed++
		}
		text, err := t.word(name, test, &result, &headed)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(t.out, text); err != nil {
			return err
		}
	}
	return nil
}

// word returns what is printed of a test. headed tells whether the file's name is out.
func (t *tester) word(name string, test *scenario.Test, result *scenario.Result, headed *bool) (
	string, error,
) {
	if t.asJSON {
		line := tested{File: name, Line: test.Line, Test: test.Name, Passed: result.Failures == nil}
		for _, f := range result.Failures {
			line.Failures = append(line.Failures, testedFailure(f))
		}
		text, err := json.Marshal(line)
		return string(text) + "\n", err
	}
	if result.Failures == nil && !t.verbose {
		return "", nil
	}
	var b strings.Builder
	if !*headed {
		*headed = true
		b.WriteString(name + "\n")
	}
	if result.Failures == nil {
		b.WriteString("  ok    " + plainText(test.Name) + "\n")
	} else {
		b.WriteString("  FAIL  " + plainText(test.Name) + "\n")
	}
	for _, f := range result.Failures {
		fmt.Fprintf(&b, "    line %d: %s\n", f.Line, plainText(f.Step))
		for line := range strings.SplitSeq(f.Text, "\n") {
			b.WriteString("      " + plainText(line) + "\n")
		}
	}
	return b.String(), nil
}

// sum says how it went altogether.
func (t *tester) sum(files int) error {
	switch {
	case t.tests == 0:
		return &Error{
			Code: ExitUsage, Text: fmt.Sprintf("no test has %q in its name", t.only),
		}
	case t.failed > 0:
		return &Error{
			Code: ExitRefused,
			Text: fmt.Sprintf("%d of %s failed", t.failed, counted(t.tests, "test")),
		}
	case t.asJSON:
		return nil
	}
	_, err := fmt.Fprintf(t.out, "%s in %s passed\n", counted(t.tests, "test"),
		counted(files, "file"))
	return err
}
