package trainer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A checkpoint is a folder step-00000120 with one file per pipeline stage, or one in
// all, named stage-0-of-1.ckpt. A file holds whole layers, parameters and Adam's
// moments, so that a job can resume on any number of workers or stages. It is valid
// when all files of a division are there and their checksums hold.

const (
	checkpointMagic   = "MUSTERCK"
	checkpointVersion = 1
	checkpointsKept   = 2
)

// errCorrupt marks files that were torn or damaged: older ones may do.
var errCorrupt = errors.New("damaged checkpoint")

// checkpointHeader precedes the floats of a file.
type checkpointHeader struct {
	Version int   `json:"version"`
	Step    int   `json:"step"`
	Shape   Shape `json:"shape"`
	From    int   `json:"from"` // layers from..to-1
	To      int   `json:"to"`
	// Mark is that of the attempt that wrote the file. Files of several attempts, which may have
	// come to a step in different ways, are no division.
	Mark   uint32 `json:"mark,omitempty"`
	Floats int    `json:"floats"` // per layer: parameters, first and second moments
}

// checkpoints is the folder of a job's checkpoints; all workers see the same one.
type checkpoints struct {
	dir  string
	rank int    // of who writes: several may write the same file at once
	mark uint32 // of this attempt
}

func (c checkpoints) folder(step int) string {
	return filepath.Join(c.dir, fmt.Sprintf("step-%08d", step))
}

func stageFile(k, of int) string { return fmt.Sprintf("stage-%d-of-%d.ckpt", k, of) }

// save writes the k-th of `of` stages. Whoever looks sees the whole file or none. All who have
// slices of its layers call it at once, and the first of them writes.
func (c checkpoints) save(s *stage, step, k, of int) error {
	data, err := encode(s, step, c.mark)
	if err != nil || s.tensor.rank > 0 {
		return err
	}
	folder := c.folder(step)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	path := filepath.Join(folder, stageFile(k, of))
	temporary := fmt.Sprintf("%s.%d.tmp", path, c.rank)
	err = writeSynced(temporary, data)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	for _, d := range []string{folder, c.dir} {
		if err == nil {
			err = syncDir(d)
		}
	}
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// encode lays out a file: magic, length of the header, header, floats, checksum.
func encode(s *stage, step int, mark uint32) ([]byte, error) {
	h := checkpointHeader{Version: checkpointVersion, Step: step, Shape: s.shape, From: s.from, To: s.to, Mark: mark}
	for i := h.From; i < h.To; i++ {
		h.Floats += 3 * newLayer(h.Shape, i, 1).size()
	}
	header, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(checkpointMagic)+8+len(header)+4*h.Floats)
	b = append(b, checkpointMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = append(b, header...)
	for i := range s.layers {
		for _, flat := range [][]float32{s.w, s.m, s.v} {
			whole, err := s.gather(flat, i)
			if err != nil {
				return nil, err
			}
			for _, x := range whole {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
		}
	}
	return binary.LittleEndian.AppendUint32(b, checksum(b)), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// decode checks a file and returns its header and the bytes of its floats.
func decode(b []byte) (h checkpointHeader, floats []byte, err error) {
	n := len(b) - 4
	if n < len(checkpointMagic)+4 || !bytes.HasPrefix(b, []byte(checkpointMagic)) {
		return h, nil, fmt.Errorf("%w: no header", errCorrupt)
	}
	if checksum(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return h, nil, fmt.Errorf("%w: checksum does not match", errCorrupt)
	}
	b = b[len(checkpointMagic):n]
	length := int(binary.LittleEndian.Uint32(b))
	if b = b[4:]; length > len(b) {
		return h, nil, fmt.Errorf("%w: header of %d bytes in %d", errCorrupt, length, len(b))
	}
	if err := json.Unmarshal(b[:length], &h); err != nil {
		return h, nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if h.Version != checkpointVersion {
		return h, nil, fmt.Errorf("checkpoint has version %d: this program reads %d", h.Version, checkpointVersion)
	}
	if floats = b[length:]; len(floats) != 4*h.Floats {
		return h, nil, fmt.Errorf("%w: %d bytes for %d floats", errCorrupt, len(floats), h.Floats)
	}
	return h, floats, nil
}

// found is a checkpoint that can be resumed from.
type found struct {
	step  int
	files []string // together they hold all layers
}

// newest returns the newest valid checkpoint of a model of this shape; ok is false
// where there is none. What was skipped as damaged is told to warn.
func (c checkpoints) newest(shape Shape, warn func(error)) (f found, ok bool, err error) {
	steps, err := c.steps()
	if err != nil {
		return found{}, false, err
	}
	for _, step := range slices.Backward(steps) {
		if f, ok, err = c.at(step, shape, warn); ok || err != nil {
			return f, ok, err
		}
	}
	return found{}, false, nil
}

// at returns the valid checkpoint of one step.
func (c checkpoints) at(step int, shape Shape, warn func(error)) (found, bool, error) {
	divisions, err := c.divisions(step)
	if err != nil {
		return found{}, false, err
	}
	for _, of := range divisions {
		f := found{step: step}
		for k := range of {
			f.files = append(f.files, filepath.Join(c.folder(step), stageFile(k, of)))
		}
		err := f.verify(shape)
		if err == nil {
			return f, true, nil
		}
		if !errors.Is(err, errCorrupt) {
			return found{}, false, err
		}
		warn(err)
	}
	return found{}, false, nil
}

// verify reads all files. Only what is damaged gives errCorrupt; a checkpoint of
// another model is the user's mistake and must not be skipped silently.
func (f found) verify(shape Shape) error {
	layer, mark := 0, uint32(0)
	for i, path := range f.files {
		h, _, err := readCheckpoint(path)
		if err != nil {
			return err
		}
		if h.Shape != shape {
			return fmt.Errorf("%w: checkpoint %s is of a model %+v, this job's is %+v", errUsage, path, h.Shape, shape)
		}
		size := 0
		for i := h.From; i < h.To && i < shape.depth(); i++ {
			size += newLayer(shape, i, 1).size()
		}
		if i == 0 {
			mark = h.Mark
		}
		if h.Step != f.step || h.From != layer || h.Floats != 3*size || h.Mark != mark {
			return fmt.Errorf("%w: %s does not fit the other stages", errCorrupt, path)
		}
		layer = h.To
	}
	if layer != shape.depth() {
		return fmt.Errorf("%w: the stages end at layer %d of %d", errCorrupt, layer, shape.depth())
	}
	return nil
}

// load fills a stage from the files, which newest or at have verified.
func (f found) load(s *stage) error {
	for _, path := range f.files {
		h, floats, err := readCheckpoint(path)
		if err != nil {
			return err
		}
		for i := h.From; i < h.To; i++ {
			n := newLayer(h.Shape, i, 1).size()
			part := floats[:12*n]
			floats = floats[12*n:]
			if i < s.from || i >= s.to {
				continue
			}
			whole := make([]float32, n)
			for _, flat := range [][]float32{s.w, s.m, s.v} {
				for k := range whole {
					whole[k] = math.Float32frombits(binary.LittleEndian.Uint32(part[4*k:]))
				}
				s.takeSlice(flat, i-s.from, whole)
				part = part[4*n:]
			}
		}
	}
	return nil
}

func readCheckpoint(path string) (checkpointHeader, []byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpointHeader{}, nil, fmt.Errorf("%w: %s is missing", errCorrupt, path)
	}
	if err != nil {
		return checkpointHeader{}, nil, fmt.Errorf("read checkpoint: %w", err)
	}
	h, floats, err := decode(b)
	if err != nil {
		return h, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return h, floats, nil
}

// steps returns the steps for which there is a folder, ascending.
func (c checkpoints) steps() ([]int, error) {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var steps []int
	for _, e := range entries {
		digits, isStep := strings.CutPrefix(e.Name(), "step-")
		if n, err := strconv.Atoi(digits); isStep && err == nil && n >= 0 && e.IsDir() {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// divisions returns the numbers of stages of which a step has all files, ascending.
func (c checkpoints) divisions(step int) ([]int, error) {
	entries, err := os.ReadDir(c.folder(step))
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	files := map[int]int{}
	for _, e := range entries {
		var k, of int
		if n, _ := fmt.Sscanf(e.Name(), "stage-%d-of-%d.ckpt", &k, &of); n == 2 && e.Name() == stageFile(k, of) && k >= 0 && k < of {
			files[of]++
		}
	}
	var complete []int
	for of, n := range files {
		if n == of {
			complete = append(complete, of)
		}
	}
	slices.Sort(complete)
	return complete, nil
}

// prune removes what is older than the last checkpoints up to the one of this step.
// Newer ones were damaged, or the job would have resumed from them; they are left to
// be looked at until training overwrites them.
func (c checkpoints) prune(step int) error {
	steps, err := c.steps()
	if err != nil {
		return err
	}
	kept := 0
	for _, s := range slices.Backward(steps) {
		if s > step {
			continue
		}
		if kept >= checkpointsKept {
			if err := os.RemoveAll(c.folder(s)); err != nil {
				return fmt.Errorf("prune checkpoints: %w", err)
			}
			continue
		}
		divisions, err := c.divisions(s)
		if err != nil {
			return err
		}
		if len(divisions) > 0 {
			kept++
		}
	}
	return nil
}
