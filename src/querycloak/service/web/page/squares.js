// Fills a rectangle with rectangles whose areas are in proportion to values, each as near to a square as it goes.

/** Lay out items (largest first, values above 0) and give `{x, y, width, height}` for each. */
export function squares(values, width, height) {
  const total = values.reduce((sum, value) => sum + value, 0);
  const areas = values.map((value) => (value / total) * width * height);
  const free = { x: 0, y: 0, width, height };
  const placed = [];
  let row = [];
  for (const area of areas) {
    const side = Math.min(free.width, free.height);
    if (row.length && worst([...row, area], side) > worst(row, side)) {
      placed.push(...layRow(row, free));
      row = [];
    }
    row.push(area);
  }
  if (row.length) placed.push(...layRow(row, free));
  return placed;
}

/** The least square-like shape of a row that lies along a side. */
function worst(row, side) {
  const sum = row.reduce((total, area) => total + area, 0);
  const depth = sum / side;
  return Math.max(...row.map((area) => Math.max((depth * depth) / area, area / (depth * depth))));
}

/** Put a row along the shorter side of what is free, and take it off what is free. */
function layRow(row, free) {
  const sum = row.reduce((total, area) => total + area, 0);
  const upright = free.width >= free.height;
  const depth = sum / (upright ? free.height : free.width);
  let along = 0;
  const placed = row.map((area) => {
    const length = area / depth;
    const one = upright ? { x: free.x, y: free.y + along, width: depth, height: length }
      : { x: free.x + along, y: free.y, width: length, height: depth };
    along += length;
    return one;
  });
  if (upright) { free.x += depth; free.width -= depth; } else { free.y += depth; free.height -= depth; }
  return placed;
}
