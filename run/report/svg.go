package report

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"

	"gonum.org/v1/plot/vg"
)

// What stands around the charts of a picture, in points.
const (
	pictureMargin = 12
	pictureLine   = 22 // of a title or of the legend
)

// SVG draws the charts of a page as one picture that stands alone, in the page's colours, light or dark as its reader has them.
func SVG(w io.Writer, p Page) error {
	var body bytes.Buffer
	y := float64(pictureMargin)
	text := func(x float64, style, s string) {
		fmt.Fprintf(&body, `<text x="%g" y="%g" %s>%s</text>`+"\n", x, y+pictureLine*.7, style, html.EscapeString(s))
	}
	if len(p.Runs) > 1 {
		x := float64(pictureMargin)
		for i := range p.Runs {
			name := p.Runs[i].Result.Strategy
			fmt.Fprintf(&body, `<rect x="%g" y="%g" width="18" height="4" fill="var(--c%d)"/>`+"\n", x, y+pictureLine*.5, i%palette)
			text(x+24, `class="legend"`, name)
			x += 24 + 8*float64(len(name)) + 24
		}
		y += pictureLine
	}
	x, row := float64(pictureMargin), 0.
	for _, c := range chartsOf(p.Runs) {
		svg, err := c.svg()
		if err != nil {
			return err
		}
		width, height := c.width.Points(), chartHeight.Points()
		if x > pictureMargin && x+width > pictureMargin+wideChart.Points() {
			x, y = pictureMargin, y+row
		}
		text(x, `class="title"`, c.title)
		place := fmt.Sprintf(`<svg x="%g" y="%g" width="%g" height="%g" `, x, y+pictureLine, width, height)
		body.WriteString(strings.Replace(svg, "<svg ", place, 1) + "\n")
		x, row = x+width+(wideChart-2*narrowChart).Points(), pictureLine+height
	}
	height, width := y+row+pictureMargin, (wideChart + 2*vg.Length(pictureMargin)).Points()
	colours := styleText[strings.Index(styleText, ":root"):strings.Index(styleText, "* {")]
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">
<style>
%ssvg { font-family: system-ui, "Liberation Sans", Arial, sans-serif; }
.title { font-size: 15px; font-weight: 600; fill: var(--ink); }
.legend { font-size: 13px; fill: var(--ink); }
</style>
<rect width="100%%" height="100%%" fill="var(--card)"/>
%s</svg>
`, width, height, width, height, html.EscapeString(p.Title), colours, body.String())
	return err
}
