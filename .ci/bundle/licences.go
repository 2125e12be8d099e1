package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// inputsOf returns the files that contributed to the output, sorted.
func inputsOf(metafile string) ([]string, error) {
	var meta struct {
		Outputs map[string]struct {
			Inputs map[string]struct {
				BytesInOutput int `json:"bytesInOutput"`
			} `json:"inputs"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, fmt.Errorf("esbuild's metafile: %w", err)
	}
	var inputs []string
	for _, output := range meta.Outputs {
		for name, input := range output.Inputs {
			if input.BytesInOutput > 0 {
				inputs = append(inputs, name)
			}
		}
	}
	slices.Sort(inputs)
	return inputs, nil
}

// licenceFile matches the names under which packages keep their licences.
var licenceFile = regexp.MustCompile(`(?i)^(?:licen[cs]e|notice|copying)`)

// manifest is what a package.json says that matters here.
type manifest struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	License    string          `json:"license"`
	Author     json.RawMessage `json:"author"`     // text, or an object with a name
	Repository json.RawMessage `json:"repository"` // text, or an object with a url
}

// gatherLicences returns the notices of all packages among the inputs. A package
// without a licence text of its own must allow Apache-2.0, whose text is ours too.
func gatherLicences(root string, inputs []string) ([]byte, error) {
	var dirs []string
	for _, input := range inputs {
		if dir, ok := packageDir(input); ok && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	var out bytes.Buffer
	out.WriteString("Licences of the packages in demo.js. The rest of demo.js is Heddle's own,\n" +
		"under the Apache License 2.0.\n")
	apache := false
	for _, dir := range dirs {
		text, own, err := notice(root, dir)
		if err != nil {
			return nil, err
		}
		apache = apache || !own
		out.WriteString(text)
	}
	if apache {
		text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
		if err != nil {
			return nil, err
		}
		out.WriteString(rule("The Apache License 2.0"))
		out.Write(bytes.TrimSpace(text))
		out.WriteString("\n")
	}
	return out.Bytes(), nil
}

// packageDir returns the directory of the package that a file belongs to, and
// false for our own files.
func packageDir(input string) (string, bool) {
	const marker = "/node_modules/"
	at := strings.LastIndex(input, marker)
	if at < 0 {
		return "", false
	}
	parts := strings.Split(input[at+len(marker):], "/")
	n := 1
	if strings.HasPrefix(parts[0], "@") {
		n = 2
	}
	return input[:at+len(marker)] + strings.Join(parts[:n], "/"), true
}

// notice returns what is to be said of one package, and whether its licence text
// is in it.
func notice(root, dir string) (text string, own bool, err error) {
	data, err := os.ReadFile(filepath.Join(root, dir, "package.json"))
	if err != nil {
		return "", false, err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return "", false, fmt.Errorf("%s/package.json: %w", dir, err)
	}
	head := rule(m.Name+" "+m.Version) + "Licence: " + m.License + "\n"
	if by := field(m.Author, "name"); by != "" {
		head += "Author: " + by + "\n"
	}
	if from := field(m.Repository, "url"); from != "" {
		head += "Source: " + from + "\n"
	}
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return "", false, err
	}
	for _, e := range entries {
		if !licenceFile.MatchString(e.Name()) {
			continue
		}
		licence, err := os.ReadFile(filepath.Join(root, dir, e.Name()))
		if err != nil {
			return "", false, err
		}
		own = true
		licence = bytes.ReplaceAll(bytes.TrimSpace(licence), []byte("\r\n"), []byte("\n"))
		head += "\n" + strings.TrimPrefix(string(licence), "\ufeff") + "\n"
	}
	if !own {
		if !strings.Contains(m.License, "Apache-2.0") {
			err := fmt.Errorf("%s declares %q and has no licence text", m.Name, m.License)
			return "", false, err
		}
		head += "The package has no licence text of its own; it is used under the Apache\n" +
			"License 2.0, below.\n"
	}
	return head, own, nil
}

func rule(title string) string {
	return "\n" + strings.Repeat("-", 78) + "\n" + title + "\n" + strings.Repeat("-", 78) + "\n"
}

// field returns a text, or the text under name of an object.
func field(raw json.RawMessage, name string) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && json.Unmarshal(object[name], &text) == nil {
		return text
	}
	return ""
}

// sameVersions reports whether node_modules holds the versions of the lock file.
func sameVersions(dir string) (bool, error) {
	want, err := versions(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return false, err
	}
	have, err := versions(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err != nil {
		return false, nil // no copy of the lock file: install anew
	}
	for name, version := range have {
		if want[name] != version {
			return false, nil
		}
	}
	return true, nil
}

// versions returns the version of each installed package by its path.
func versions(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := map[string]string{}
	for name, p := range lock.Packages {
		if name != "" {
			out[name] = p.Version
		}
	}
	return out, nil
}
