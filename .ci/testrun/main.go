// Command testrun runs a suite and adds up its tests, so that the closing line
// of CI counts what ran and nothing else.
//
//	testrun go ARGS...            runs `go test -json ARGS...`
//	testrun npm DIRECTORY SCRIPT  runs a script there that calls Node's test runner
//	testrun total FILE            prints the closing line of the results in FILE
//
// The first two print what a person wants to read (failures in full, one line a
// package), append one line for each test to the file that TEST_RESULTS names,
// if it names one, and end with the suite's own exit status.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 3 || os.Args[1] == "npm" && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: testrun go ARGS... | npm DIRECTORY SCRIPT | total FILE")
		os.Exit(2)
	}
	var results []result
	var err error
	switch args := os.Args[2:]; os.Args[1] {
	case "go":
		results, err = runGo(args, os.Stdout)
	case "npm":
		results, err = runNpm(args[0], args[1], os.Stdout)
	case "total":
		err = printTotal(args[0], os.Stdout)
	default:
		err = fmt.Errorf("unknown suite %q", os.Args[1])
	}
	if path := os.Getenv("TEST_RESULTS"); path != "" {
		err = errors.Join(err, appendResults(path, results))
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// result is the end of one test. A name may meet several results (plain and
// under race): it counts once, by the worst but for skips.
type result struct {
	outcome string // "pass", "fail" or "skip"
	name    string // package and test
}

// event is one line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

func runGo(args []string, out io.Writer) ([]result, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results := readEvents(stdout, out)
	return results, cmd.Wait()
}

// readEvents follows a run of `go test -json` to its end. Of a test with
// subtests only these count, unless it failed by itself.
func readEvents(in io.Reader, out io.Writer) []result {
	var results []result
	output := map[string][]string{} // of tests that run, and of packages
	parents := map[string]bool{}    // tests with subtests
	failed := map[string]bool{}     // tests and packages below which one failed
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // go's own words, such as a flag error
			continue
		}
		id := e.Package + e.ImportPath + " " + e.Test
		above := e.Package + " "
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
			above += e.Test[:i]
		}
		switch e.Action {
		case "run":
			if strings.Contains(e.Test, "/") {
				parents[above] = true
			}
		case "output", "build-output":
			if strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL\t") {
				fmt.Fprint(out, e.Output)
			} else {
				output[id] = append(output[id], e.Output)
			}
		case "build-fail":
			fmt.Fprint(out, strings.Join(output[id], ""))
			delete(output, id)
		case "pass", "skip", "fail":
			if e.Action == "fail" {
				fmt.Fprint(out, strings.Join(output[id], ""))
			}
			delete(output, id)
			ownFailure := e.Action == "fail" && !failed[id]
			if e.Action == "fail" {
				failed[id], failed[above] = true, true
			}
			if ownFailure || e.Test != "" && !parents[id] {
				results = append(results, result{e.Action, strings.TrimSpace(id)})
			}
		}
	}
	return results
}

// summaryLine is a count in the closing lines of Node's test runner.
var summaryLine = regexp.MustCompile(`^(?:#|ℹ) (pass|fail|cancelled|skipped) (\d+)$`)

func runNpm(dir, script string, out io.Writer) ([]result, error) {
	cmd := exec.Command("npm", "run", "--silent", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NODE_OPTIONS=--test-reporter=spec")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var results []result
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	suite := filepath.ToSlash(dir) + " " + script
	runs := 0 // summaries seen: a script may run several
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		m := summaryLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		outcome := m[1]
		switch outcome {
		case "pass":
			runs++ // the first line of a summary
		case "skipped":
			outcome = "skip"
		case "cancelled":
			outcome = "fail"
		}
		for i := range n {
			results = append(results,
				result{outcome, fmt.Sprintf("%s run %d %s %d", suite, runs, m[1], i)})
		}
	}
	err = cmd.Wait()
	if err != nil && len(results) == 0 {
		results = append(results, result{"fail", suite})
	}
	return results, err
}

func appendResults(path string, results []result) error {
	var text strings.Builder
	for _, r := range results {
		fmt.Fprintf(&text, "%s\t%s\n", r.outcome, r.name)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

func printTotal(path string, out io.Writer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rank := map[string]int{"skip": 1, "pass": 2, "fail": 3}
	outcomes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		outcome, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if rank[outcome] > rank[outcomes[name]] {
			outcomes[name] = outcome
		}
	}
	count := map[string]int{}
	for _, outcome := range outcomes {
		count[outcome]++
	}
	_, err = fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n",
		count["pass"], count["fail"], count["skip"])
	return err
}
