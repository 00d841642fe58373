// What lies over the points, on a canvas of its own: axes, rings around points, the lasso.

export function drawOverlay(canvas, viewport, points, marks, theme) {
  const pen = canvas.getContext("2d");
  pen.setTransform(viewport.ratio, 0, 0, viewport.ratio, 0, 0);
  pen.clearRect(0, 0, viewport.width, viewport.height);
  if (points.axes) drawAxes(pen, viewport, points.axes, theme);
  pen.lineWidth = 2;
  const ring = (at, radius, ink) => {
    if (!(at >= 0 && at < points.n)) return;
    pen.strokeStyle = ink;
    pen.beginPath();
    pen.arc(...viewport.toPixel(points.x[at], points.y[at]), radius, 0, 2 * Math.PI);
    pen.stroke();
  };
  ring(marks.hovered, 6, theme.primary);
  ring(marks.at, 8, theme.text);
  pen.strokeStyle = theme.primary;
  pen.beginPath();
  for (const corner of marks.lasso) pen.lineTo(...viewport.toPixel(...corner));
  if (!marks.isDrawing) pen.closePath();
  pen.stroke();
}

function drawAxes(pen, viewport, axes, theme) {
  pen.font = `11px ${theme.font}`;
  Object.assign(pen, { fillStyle: theme.text, strokeStyle: theme.background, lineWidth: 4, lineJoin: "round" });
  const write = (text, x, y) => {
    pen.strokeText(text, x, y); // over points
    pen.fillText(text, x, y);
  };
  const draw = ({ name, ticks }, isX) => {
    for (const [at, text] of ticks) {
      const [x, y] = viewport.toPixel(at, at);
      pen.globalAlpha = 0.12;
      if (isX) pen.fillRect(Math.round(x), 0, 1, viewport.height);
      else pen.fillRect(0, Math.round(y), viewport.width, 1);
      pen.globalAlpha = 0.85;
      write(text, isX ? x + 3 : 4, isX ? viewport.height - 5 : y - 3);
    }
    const wide = pen.measureText(name).width;
    if (isX) write(name, viewport.width - wide - 8, viewport.height - 20);
    else write(name, 36, 14);
  };
  draw(axes.x, true);
  draw(axes.y, false);
  pen.globalAlpha = 1;
}
