package spec

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Sites are the places of a cluster that are far from each other, and the links between them.
type Sites struct {
	Names []string
	Of    []int32 // the site of each rack
	// Links lead from each to each, as two nodes have them for themselves; PerGB is what a gigabyte
	// costs that leaves on one.
	Links [][]pipeline.Link
	PerGB [][]unit.Milli
}

// siteFile is a site as a user writes it.
type siteFile struct {
	Name  string
	Links []siteLinkFile
}

// siteLinkFile is a link to another site, and back where that site does not say another one.
type siteLinkFile struct {
	To         string
	Bandwidth  unit.Mbps
	Delay      unit.Duration
	PricePerGB unit.Milli `yaml:"price-per-gb"`
}

// maxSites bounds the links between sites.
const maxSites = 1000

// sites checks what a file says of sites; known is whether who reads it knows what they are.
func (d *decoder) sites(f *clusterFile, known bool) (s Sites) {
	if len(f.Sites) > 0 && !known {
		d.wrong("sites", fmt.Sprintf("%d sites", len(f.Sites)), "none, as only muster plan knows links between sites", "remove them, and site of each rack")
		return s
	}
	if len(f.Sites) > maxSites {
		d.wrong("sites", fmt.Sprintf("%d sites", len(f.Sites)), fmt.Sprintf("at most %d", maxSites), "")
		return s
	}
	for i, site := range f.Sites {
		at := fmt.Sprintf("sites[%d].name", i)
		d.checkName(at, site.Name, "")
		switch {
		case site.Name == "":
			d.wrong(at, "nothing", "a name", "give the site one")
		case slices.Contains(s.Names, site.Name):
			d.wrong(at, "the site "+quote(site.Name)+" a second time", "", "remove one of the two")
			site.Name = "" // nothing is wrong with its links
		}
		s.Names = append(s.Names, site.Name)
		s.Links, s.PerGB = append(s.Links, make([]pipeline.Link, len(f.Sites))), append(s.PerGB, make([]unit.Milli, len(f.Sites)))
	}
	d.siteLinks(f, &s)
	named := slices.DeleteFunc(slices.Clone(s.Names), func(name string) bool { return name == "" })
	used := make([]bool, len(s.Names))
	for i, rack := range f.Racks {
		at, site := fmt.Sprintf("racks[%d].site", i), -1
		if rack.Site != "" {
			site = slices.Index(s.Names, rack.Site)
		}
		switch {
		case len(f.Sites) == 0 && rack.Site != "":
			d.wrong(at, quote(rack.Site), "no site where there are none", "add sites: [{name: "+rack.Site+"}], with its links")
		case len(f.Sites) > 0 && site < 0:
			d.wrong(at, orNothing(rack.Site), "one of the sites above", didYouMean(rack.Site, named))
		case site >= 0:
			used[site] = true
		}
		s.Of = append(s.Of, int32(max(0, site)))
	}
	for i, name := range s.Names {
		if !used[i] && name != "" {
			d.wrong(fmt.Sprintf("sites[%d]", i), "the site "+quote(name)+" without a rack", "a rack at least", "write site: "+name+" beside the name of a rack, or remove the site")
		}
	}
	return s
}

// siteLinks reads the links: each two sites need one, which leads both ways where only one of them
// says so.
func (d *decoder) siteLinks(f *clusterFile, s *Sites) {
	n := len(s.Names)
	named := slices.DeleteFunc(slices.Clone(s.Names), func(name string) bool { return name == "" })
	said := make([]bool, n*n)
	for i, site := range f.Sites {
		for k, link := range site.Links {
			at := fmt.Sprintf("sites[%d].links[%d]", i, k)
			to := -1
			if link.To != "" {
				to = slices.Index(s.Names, link.To)
			}
			if !d.has(at+".bandwidth") || link.Bandwidth == 0 {
				d.wrong(at+".bandwidth", zeroOr(d, at+".bandwidth"), "what two nodes have between them", "add it, as in bandwidth: 5Gbps")
			}
			switch {
			case to < 0:
				d.wrong(at+".to", orNothing(link.To), "one of the sites", didYouMean(link.To, named))
				continue
			case to == i:
				d.wrong(at+".to", "the site itself", "another one", "nodes of a site have their uplinks")
				continue
			case said[i*n+to]:
				d.wrong(at, "a link to "+quote(link.To)+" a second time", "one", "remove one of the two")
				continue
			}
			said[i*n+to] = true
			s.Links[i][to], s.PerGB[i][to] = pipeline.Link{Bandwidth: link.Bandwidth, Latency: link.Delay}, link.PricePerGB
		}
	}
	for i := range n {
		for k := range i {
			switch {
			case s.Names[i] == "" || s.Names[k] == "":
			case !said[i*n+k] && !said[k*n+i]:
				d.wrong(fmt.Sprintf("sites[%d].links", i), "no link to "+quote(s.Names[k]), "one, from either", "add {to: "+s.Names[k]+", bandwidth: 5Gbps, delay: 30ms}")
			case !said[i*n+k]:
				s.Links[i][k], s.PerGB[i][k] = s.Links[k][i], s.PerGB[k][i]
			case !said[k*n+i]:
				s.Links[k][i], s.PerGB[k][i] = s.Links[i][k], s.PerGB[i][k]
			}
		}
	}
}
