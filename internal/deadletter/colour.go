package deadletter

// Colour is the colour of a broker's label. Pages have a light and a dark shade of each colour.
type Colour string

// Colours lists all colours.
var Colours = []Colour{"red", "amber", "green", "teal", "blue", "grey"}
