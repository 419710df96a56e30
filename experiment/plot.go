package experiment

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a plot.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// colours can be told apart by people who see few of them (Okabe and Ito, Color Universal Design, 2008). Combinations
// beyond them have other dashes.
var colours = []color.NRGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255},
}

var dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}, {vg.Points(8), vg.Points(2), vg.Points(2), vg.Points(2)}}

// drawn says whether any combination has points of a curve.
func drawn(f curve, combinations []Combination) bool {
	for _, c := range combinations {
		if len(c.Curves[f.name]) > 0 {
			return true
		}
	}
	return false
}

// svg draws a curve of each combination, the mean over runs as a line and its 95% interval as a band.
func svg(f curve, combinations []Combination) ([]byte, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "version", f.title
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Add(plotter.NewGrid())
	ends, lines := 0.0, 0
	for i, c := range combinations {
		points := c.Curves[f.name]
		if len(points) == 0 {
			continue
		}
		ends += points[len(points)-1].Mean
		lines++
		colour := colours[i%len(colours)]
		for _, band := range bands(points) {
			if err := addBand(p, band, colour); err != nil {
				return nil, fmt.Errorf("plot %s of %s: %w", f.name, c.Label, err)
			}
		}
		line, err := plotter.NewLine(means(points))
		if err != nil {
			return nil, fmt.Errorf("plot %s of %s: %w", f.name, c.Label, err)
		}
		line.Color, line.Width, line.Dashes = colour, vg.Points(1.5), dashes[i/len(colours)%len(dashes)]
		p.Add(line)
		p.Legend.Add(c.Label, line)
	}
	if f.share { // An interval of a mean may leave the range of what it is of.
		p.Y.Min, p.Y.Max = 0, 1
	}
	// One version alone, or one value alone, would leave no room to draw in.
	if p.X.Max-p.X.Min < 1 {
		p.X.Max = p.X.Min + 1
	}
	if p.Y.Max-p.Y.Min < 1e-9 {
		p.Y.Min, p.Y.Max = p.Y.Min-0.5, p.Y.Max+0.5
	}
	// The legend is at the right, where the lines end: it takes the half that they leave.
	p.Legend.Top = ends/float64(max(lines, 1)) < (p.Y.Min+p.Y.Max)/2
	c := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(c))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("plot %s: %w", f.name, err)
	}
	return out.Bytes(), nil
}

// means are the points of a line.
func means(points []Point) plotter.XYs {
	line := make(plotter.XYs, len(points))
	for i, p := range points {
		line[i] = plotter.XY{X: float64(p.Version), Y: p.Mean}
	}
	return line
}

// bands are the stretches of two or more points in a row that have an interval.
func bands(points []Point) (list [][]Point) {
	var stretch []Point
	end := func() {
		if len(stretch) > 1 {
			list = append(list, stretch)
		}
		stretch = nil
	}
	for _, p := range points {
		if p.Low == nil {
			end()
			continue
		}
		stretch = append(stretch, p)
	}
	end()
	return list
}

// addBand draws the intervals of points.
func addBand(p *plot.Plot, points []Point, colour color.NRGBA) error {
	outline := make(plotter.XYs, 2*len(points))
	for i, point := range points {
		x := float64(point.Version)
		outline[i] = plotter.XY{X: x, Y: *point.Low}
		outline[len(outline)-1-i] = plotter.XY{X: x, Y: *point.High}
	}
	band, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	colour.A = 40
	band.Color, band.Width = colour, 0
	p.Add(band)
	return nil
}
