// swift-tools-version:5.9
// The engine is libmica, built for the target by CMake; its folder is given to the linker: swift build -Xlinker -L<folder>.
import PackageDescription

let package = Package(
    name: "Mica",
    platforms: [.iOS(.v16), .macOS(.v13)],
    products: [.library(name: "Mica", targets: ["Mica"])],
    targets: [
        .systemLibrary(name: "CMica", path: "Sources/CMica"),
        .target(name: "Mica", dependencies: ["CMica"], path: "Sources/Mica"),
    ]
)
