package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Chart geometry, in SVG user units.
const (
	chartWidth, chartHeight         = 720.0, 260.0
	marginLeft, marginRight         = 52.0, 16.0
	marginTop, marginBottom         = 14.0, 40.0
	plotWidth                       = chartWidth - marginLeft - marginRight
	plotHeight                      = chartHeight - marginTop - marginBottom
	axisTicks                       = 5
	seriesMarkers                   = 3.2
	barGap                  float64 = 0.2
)

// point is one sample of a series; low and high, when they differ, bound its interval.
type point struct{ x, y, low, high float64 }

// series is a named line. Its class picks colour and marker, so that meaning never rests on colour alone.
type series struct {
	name, class string
	points      []point
}

// axes are the labels and the range of a chart. The range starts at 0.
type axes struct {
	x, y       string
	maxX, maxY float64
	title      string
}

// lineChart draws series over common axes as a self-contained SVG element.
func lineChart(a axes, lines ...series) template.HTML {
	var b strings.Builder
	openChart(&b, a)
	yAxis(&b, a)
	for i := range axisTicks + 1 {
		v := a.maxX * float64(i) / axisTicks
		x := marginLeft + plotWidth*float64(i)/axisTicks
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, chartHeight-marginBottom+16, number(v))
	}
	for _, s := range lines {
		band(&b, a, s)
		var path strings.Builder
		for i, p := range s.points {
			verb := "L"
			if i == 0 {
				verb = "M"
			}
			x, y := place(a, p.x, p.y)
			fmt.Fprintf(&path, "%s%.1f %.1f", verb, x, y)
		}
		fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, s.class, path.String())
		for _, p := range s.points {
			x, y := place(a, p.x, p.y)
			fmt.Fprintf(&b, `<circle class="mark %s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s: %s at %s</title></circle>`,
				s.class, x, y, seriesMarkers, template.HTMLEscapeString(s.name), number(p.y), number(p.x))
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// barChart draws one bar for each value, labelled with its index.
func barChart(a axes, values []int) template.HTML {
	var b strings.Builder
	openChart(&b, a)
	yAxis(&b, a)
	width := plotWidth / float64(max(len(values), 1))
	for i, v := range values {
		x := marginLeft + width*float64(i)
		_, y := place(a, 0, float64(v))
		fmt.Fprintf(&b, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%d: %d</title></rect>`,
			x+width*barGap/2, y, width*(1-barGap), marginTop+plotHeight-y, i, v)
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%d</text>`, x+width/2, chartHeight-marginBottom+16, i)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

func openChart(b *strings.Builder, a axes) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(a.title))
	fmt.Fprintf(b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		marginLeft+plotWidth/2, chartHeight-6, template.HTMLEscapeString(a.x))
	fmt.Fprintf(b, `<text class="axis" transform="translate(13 %.1f) rotate(-90)" text-anchor="middle">%s</text>`,
		marginTop+plotHeight/2, template.HTMLEscapeString(a.y))
}

func yAxis(b *strings.Builder, a axes) {
	for i := range axisTicks + 1 {
		v := a.maxY * float64(i) / axisTicks
		_, y := place(a, 0, v)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, marginLeft, chartWidth-marginRight, y, y)
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, marginLeft-6, y+4, number(v))
	}
}

func band(b *strings.Builder, a axes, s series) {
	var upper, lower []string
	for _, p := range s.points {
		if p.high <= p.low {
			return
		}
		x, y := place(a, p.x, p.high)
		upper = append(upper, fmt.Sprintf("%.1f %.1f", x, y))
		x, y = place(a, p.x, p.low)
		lower = append([]string{fmt.Sprintf("%.1f %.1f", x, y)}, lower...)
	}
	if len(upper) > 1 {
		fmt.Fprintf(b, `<path class="band %s" d="M%sZ"/>`, s.class, strings.Join(append(upper, lower...), "L"))
	}
}

func place(a axes, x, y float64) (float64, float64) {
	px, py := 0.0, 0.0
	if a.maxX > 0 {
		px = x / a.maxX
	}
	if a.maxY > 0 {
		py = y / a.maxY
	}
	return marginLeft + plotWidth*px, marginTop + plotHeight*(1-py)
}

// number prints v with at most three significant digits.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// ceiling rounds v up to 1, 2 or 5 times a power of ten, so that axes end on round numbers.
func ceiling(v float64) float64 {
	if v <= 0 {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if v <= m*base {
			return m * base
		}
	}
	return 10 * base
}
