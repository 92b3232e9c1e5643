// A colour scale with its ends and some values between them.
import { useCallback } from "preact/hooks";
import { Canvas } from "../draw/canvas";
import { css, rgbAt, type Scale } from "../draw/scale";
import { withUnit } from "../format";

export function Legend({ scale, unit = "" }: { scale: Scale; unit?: string }) {
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number, height: number) => {
      for (let x = 0; x < width; x += 1) {
        context.fillStyle = css(rgbAt(scale.kind, x / (width - 1)));
        context.fillRect(x, 0, 1.5, height);
      }
    },
    [scale.kind],
  );
  return (
    <span class="legend">
      <span class="num">{withUnit(scale.low, unit)}</span>
      <Canvas paint={paint} height={10} label={`colours from ${withUnit(scale.low, unit)} to ${withUnit(scale.high, unit)}`} />
      <span class="num">{withUnit(scale.high, unit)}</span>
      <span class="faint">{scale.kind === "log" ? "log scale" : ""}</span>
    </span>
  );
}
