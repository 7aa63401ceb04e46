package history

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/musterdl/muster/internal/foreign/kube"
	"github.com/musterdl/muster/model/unit"
)

func looksKube(head []byte) bool {
	head = bytes.TrimSpace(head)
	return len(head) > 0 && head[0] == '{' && (bytes.Contains(head, []byte(`"items"`)) || bytes.Contains(head, []byte(`"apiVersion"`)))
}

func readKube(h *History, in *bufio.Reader, _ func(string) (io.ReadCloser, error)) error {
	h.took("creation for the submission, start and end as the status has them; local queues of Kueue, else namespaces, for tenants")
	return kube.Each(in, func(line int, o *kube.Object, err error) {
		if err == nil {
			err = h.kubeJob(line, o)
		}
		if err != nil {
			h.wrong(line, strings.TrimSpace(o.Kind+" "+o.Metadata.Name), err)
		}
	})
}

func (h *History) kubeJob(line int, o *kube.Object) error {
	roles, known, err := o.Roles()
	if err != nil {
		return err
	}
	if !known {
		h.leave(line, "a "+cmp.Or(o.Kind, "nameless kind")+", which is no job that is read")
		return nil
	}
	start, end := o.Span()
	switch {
	case start == "":
		h.leave(line, "never started")
		return nil
	case end == "":
		h.leave(line, "still running")
		return nil
	}
	r := run{name: o.Metadata.Namespace + "/" + o.Metadata.Name, class: o.Metadata.Name,
		tenant: cmp.Or(o.Metadata.Labels["kueue.x-k8s.io/queue-name"], o.Spec.QueueName, o.Metadata.Namespace), priority: o.Spec.Priority}
	if r.start, err = clock(start); err != nil {
		return fmt.Errorf("its start: %w", err)
	}
	if r.submit, err = clock(cmp.Or(o.Metadata.CreationTimestamp, start)); err != nil {
		return fmt.Errorf("its creation: %w", err)
	}
	over, err := clock(end)
	if err != nil {
		return fmt.Errorf("its end: %w", err)
	}
	if r.ran = over.Sub(r.start); r.ran < 0 {
		return fmt.Errorf("its end %s lies before its start", end)
	}
	h.kubePods(&r, roles)
	h.add(line, r, false)
	return nil
}

// kubePods makes workers of pods. Where those of one job differ, it is one worker of one device for each device it holds.
func (h *History) kubePods(r *run, roles []kube.Role) {
	r.share = unit.Whole
	alike, devices := true, int32(0)
	for i := range roles {
		p := &roles[i]
		alike = alike && p.GPUs == roles[0].GPUs
		devices += int32(p.GPUs * p.Count)
		r.workers += int32(p.Count)
		r.cpu, r.memory = max(r.cpu, p.CPU), max(r.memory, p.Memory)
		if p.Parts != "" {
			h.took("each %s for a device", p.Parts)
		}
	}
	switch {
	case len(roles) == 0:
		r.workers = 1
	case alike && roles[0].GPUs <= 1024:
		r.devices = int32(roles[0].GPUs)
	default:
		h.took("jobs whose pods differ for gangs of one device a worker; pods without devices are left out of them")
		r.workers, r.devices, r.cpu, r.memory = devices, 1, 0, 0
	}
}
