package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPictures: README's pictures of runs are what its own commands draw today. MUSTER_UPDATE=1 draws them anew.
func TestPictures(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, line := range regexp.MustCompile(`(?m)^muster (.*) --plot (\S+\.svg)`).FindAllStringSubmatch(string(page), -1) {
		t.Run(line[2], func(t *testing.T) {
			drawn++
			here, kept := filepath.Join(t.TempDir(), line[2]), filepath.Join("../../docs/images", line[2])
			args := strings.Fields(regexp.MustCompile(` --html \S+`).ReplaceAllString(line[1], ""))
			mustMuster(t, append(args, "--quiet", "--plot", here)...)
			got, err := os.ReadFile(here)
			if err != nil {
				t.Fatal(err)
			}
			if os.Getenv("MUSTER_UPDATE") != "" {
				if err := os.WriteFile(kept, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what its command draws: MUSTER_UPDATE=1 go test ./cmd/muster -run Pictures (%v)", kept, err)
			}
			if !strings.Contains(string(page), "](docs/images/"+line[2]+")") {
				t.Errorf("README does not show %s", line[2])
			}
		})
	}
	if drawn != 2 {
		t.Errorf("%d pictures are drawn by README's commands, want 2", drawn)
	}
}
