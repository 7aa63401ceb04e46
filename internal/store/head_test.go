package store

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHeadFileRemembersTheNewest(t *testing.T) {
	path := filepath.Join(tempDir(t), headName)
	h, err := openHead(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.file.Close()
	if at, found := h.read(); found {
		t.Fatalf("an empty file remembers %+v", at)
	}
	at := genesis()
	for range 5 {
		older := at
		at = at.next([]byte("batch"))
		if err := h.write(at); err != nil {
			t.Fatal(err)
		}
		again, err := openHead(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, found := again.read(); !found || got != at {
			t.Fatalf("wrote %d, read %d, %v", at.seq, got.seq, found)
		}
		// A torn write of the newest slot leaves the one before.
		if older.seq > 0 {
			slot := int64(again.turn%2) * slotSpacing
			if _, err := again.file.WriteAt([]byte{0xff}, slot+20); err != nil {
				t.Fatal(err)
			}
			if got, found := again.read(); !found || got != older {
				t.Fatalf("after a torn write of %d: %d, %v", at.seq, got.seq, found)
			}
			if err := again.reset(at); err != nil {
				t.Fatal(err)
			}
			h.read()
		}
		if err := again.file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// After a power cut the head file may be behind. What Open then finds and hands out
// is as good as acknowledged.
func TestOpenMovesTheHeadFileOn(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir, Options{})
	fill(t, s, 1, 3)
	behind := readFiles(t, dir)[headName]
	fill(t, s, 4, 5)
	closeStore(t, s)
	if err := os.WriteFile(filepath.Join(dir, headName), behind, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{})
	wantAll(t, s, 1, 5)
	closeStore(t, s)
	alter(t, dir, "DELETE FROM batch WHERE seq = 5")
	if r := open(t, dir, Options{}).Report(); r.Loss == nil || r.Loss.From != 5 {
		t.Fatalf("%v", r)
	}
}

// A page that hides a row shows no row that is wrong; the check of the structure sees it.
func TestHiddenRowIsFound(t *testing.T) {
	files := closedFiles(t)
	dir := lay(t, files)
	s := open(t, dir, Options{})
	var root int
	if err := s.readers.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'key'").Scan(&root); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	const pageSize, interior, leaf = 4096, 2, 10 // SQLite's file format, index b-tree pages
	page := files[databaseName][(root-1)*pageSize:]
	if page[0] == interior {
		first := binary.BigEndian.Uint32(page[binary.BigEndian.Uint16(page[12:]):]) // left child of the first cell
		page = files[databaseName][(first-1)*pageSize:]
	}
	if page[0] != leaf {
		t.Fatalf("a page of type %d", page[0])
	}
	binary.BigEndian.PutUint16(page[3:], binary.BigEndian.Uint16(page[3:])-1) // one cell fewer
	s = open(t, lay(t, files), Options{})
	if r := s.Report(); !r.Intact() || !strings.Contains(strings.Join(r.Mended, "; "), "database structure") {
		t.Fatalf("%v", r)
	}
	for i := 1; i <= damageBatches; i++ {
		if _, seen, err := s.Seen(sampleKey(i)); !seen || err != nil {
			t.Fatalf("the key of batch %d: %v, %v", i, seen, err)
		}
	}
	wantAll(t, s, 1, damageBatches)
}
