package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the three commands with which README begins as they stand there, from sacct to a picture: in an
// empty folder, where sacct prints a sample and go runs this program. The cluster that import names is the one that
// the third command has.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```\n(sacct .*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("README has no commands that begin with sacct")
	}
	commands := string(block[1])
	sample, err := filepath.Abs("testdata/sacct/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(text), "\n")
	if columns := strings.ReplaceAll(header, "|", ","); !strings.Contains(commands, " -o "+columns+" > jobs.txt") {
		t.Errorf("README asks sacct for other columns than %s", columns)
	}
	bin, dir := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{"sacct": `cat "$SAMPLE"`, "go": `[ "$1 $2" = "run ./cmd/muster" ] && shift 2 && exec "$SELF" "$@"`} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-ec", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "SAMPLE="+sample, "SELF="+os.Args[0], "MUSTER_TEST_AS_MUSTER=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	cluster := regexp.MustCompile(` --cluster (\S+)`)
	named, used := cluster.FindSubmatch(out), cluster.FindStringSubmatch(commands)
	if named == nil || used == nil || string(named[1]) != used[1] {
		t.Errorf("import names the cluster %q, and README's third command has %q", named, used)
	}
	picture, err := os.ReadFile(filepath.Join(dir, "compare.html"))
	if err != nil || !bytes.Contains(picture, []byte("<svg")) {
		t.Errorf("no picture: %v", err)
	}
}
