// What may be shown as a picture.

/** Pictures come from the run: only ones that carry their own bytes, and only as an image. */
export function safeImage(address: string | undefined): string | null {
  return address !== undefined && /^data:image\/(png|jpeg);base64,[A-Za-z0-9+/=]+$/.test(address) ? address : null;
}
