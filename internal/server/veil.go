package server

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// elsewhere stands for the name of a job that the reader does not see.
const elsewhere = "another tenant's job"

// veil takes names out of what an identity is shown. It is used inside a query.
type veil struct {
	reader *reader
	id     *access.Identity
	all    bool // nothing is taken out
}

func (rd *reader) veil(id *access.Identity) veil { return veil{rd, id, id.SeesAll()} }

// name is the name of a job, or what stands for it.
func (x veil) name(job string) string {
	if x.all || job == "" {
		return job
	}
	if id, known := x.reader.plane.Find(job); known && !sees(x.id, x.reader.plane.Info(id)) {
		return elsewhere
	}
	return job
}

// text is a text without the names of jobs that the identity does not see. It goes by
// words: a word of the text that happens to be another tenant's job's name goes too,
// which is the lesser evil.
func (x veil) text(text string) string {
	if x.all {
		return text
	}
	var b strings.Builder
	for text != "" {
		word := text
		if end := strings.IndexFunc(text, func(c rune) bool { return !letter(c) }); end >= 0 {
			word = text[:end]
		}
		if word == "" {
			_, n := utf8.DecodeRuneInString(text)
			b.WriteString(text[:n])
			text = text[n:]
			continue
		}
		text = text[len(word):]
		bare := strings.TrimRight(word, ".") // the end of a sentence, perhaps
		if hidden := x.name(word); hidden != word {
			b.WriteString(hidden)
		} else {
			b.WriteString(x.name(bare) + word[len(bare):])
		}
	}
	return b.String()
}

// letter reports whether a name of a job can have a letter in it.
func letter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// info is what the plane keeps of a job without what its failure tells of what is run.
func (x veil) info(info plane.JobInfo) plane.JobInfo {
	if info.Failure != nil && !x.id.Steers(tenantOf(info), ownerOf(info)) {
		info.Failure = info.Failure.Veiled()
	}
	return info
}

// job describes a job that the identity sees; what is run, and where, is for those who may
// read its log too.
func (x veil) job(site *explain.Site, v plan.View, info plane.JobInfo, id plan.JobID) view.Job {
	j := view.JobOf(v, x.info(info), id, site)
	j.Reason = x.reader.withComing(v, id, j.Reason)
	if !x.id.Steers(tenantOf(info), ownerOf(info)) { // people put keys into command lines
		j.Command, j.Dir = nil, ""
	}
	if x.all {
		return j
	}
	j.Reason = x.text(j.Reason)
	j.After = slices.Clone(j.After) // which are the plane's
	for i := range j.After {
		name, _ := workload.ParseAfter(j.After[i])
		j.After[i] = workload.AfterOf(j.After[i], x.name(name))
	}
	return j
}

// withComing adds to the reason why a job runs that it will have to give way.
func (rd *reader) withComing(v plan.View, id plan.JobID, reason string) string {
	words := rd.promises.Coming(v, id)
	if words == "" || reason == "" {
		return reason + words
	}
	return reason + "; " + words
}

func (x veil) steps(s view.Steps) view.Steps {
	for i := range s.Decisions {
		d := &s.Decisions[i]
		d.Reason = x.text(d.Reason)
		for k := range d.Steps {
			d.Steps[k].Chose, d.Steps[k].Rejected = x.text(d.Steps[k].Chose), x.text(d.Steps[k].Rejected)
		}
	}
	return s
}

// nodes shows that a device is held, and by whom only where the identity sees the job.
func (x veil) nodes(list []view.Node) []view.Node {
	for i := range list {
		for k := range list[i].Devices {
			for h := range list[i].Devices[k].Holders {
				holder := &list[i].Devices[k].Holders[h]
				holder.Job = x.name(holder.Job)
			}
		}
	}
	return list
}

// cluster leaves the sums: that there is a queue, and how long, is what everybody who
// waits in it is told.
func (x veil) cluster(c view.Cluster) view.Cluster {
	c.Queue.Oldest = x.name(c.Queue.Oldest)
	return c
}
